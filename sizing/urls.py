from django.urls import path

from sizing import views
from sizing.calculator.views import calculator, stages
from sizing.help import help_memory
from sizing.own_views import launch_own

urlpatterns = [
    path("", views.home, name="home"),
    path("launch/", views.launch, name="launch"),
    path("launch/own/", launch_own, name="launch-own"),
    path("launch/result/", views.launch_result, name="launch-result"),
    path("calculator/", calculator, name="calculator"),
    path("calculator/stages/", stages, name="calculator-stages"),
    path("help/memory/", help_memory, name="help-memory"),
]
