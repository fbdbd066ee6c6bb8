from django.urls import path

from sizing import views

urlpatterns = [
    path("", views.home, name="home"),
    path("launch/", views.launch, name="launch"),
    path("launch/result/", views.launch_result, name="launch-result"),
    path("help/memory/", views.help_memory, name="help-memory"),
]
