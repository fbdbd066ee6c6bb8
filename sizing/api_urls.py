from django.urls import path

from sizing.api import RecommendationsView, SizingView

urlpatterns = [
    path("sizing", SizingView.as_view(), name="api-sizing"),
    path("recommendations", RecommendationsView.as_view(), name="api-recommendations"),
]
