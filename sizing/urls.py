from django.urls import path

from sizing import views
from sizing.help import help_memory

urlpatterns = [
    path("", views.home, name="home"),
    path("launch/", views.launch, name="launch"),
    path("launch/result/", views.launch_result, name="launch-result"),
    path("help/memory/", help_memory, name="help-memory"),
]
