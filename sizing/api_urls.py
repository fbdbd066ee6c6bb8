from django.urls import path

from sizing.api_models import ModelsView, ModelView
from sizing.api_vectors import VectorsView
from sizing.calculator.api import CalculatorView, StagesView
from sizing.own_api import ReadModelView

urlpatterns = [
    path("sizing/vectors", VectorsView.as_view(), name="api-vectors"),
    path("models", ModelsView.as_view(), name="api-models"),
    path("models/read", ReadModelView.as_view(), name="api-models-read"),
    path("models/<str:slug>", ModelView.as_view(), name="api-model"),
    path("calculator", CalculatorView.as_view(), name="api-calculator"),
    path("calculator/stages", StagesView.as_view(), name="api-calculator-stages"),
]
