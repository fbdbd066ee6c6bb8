from django.urls import path

from sizing.api import RecommendationsView, SizingView
from sizing.calculator.api import CalculatorView, StagesView

urlpatterns = [
    path("sizing", SizingView.as_view(), name="api-sizing"),
    path("recommendations", RecommendationsView.as_view(), name="api-recommendations"),
    path("calculator", CalculatorView.as_view(), name="api-calculator"),
    path("calculator/stages", StagesView.as_view(), name="api-calculator-stages"),
]
