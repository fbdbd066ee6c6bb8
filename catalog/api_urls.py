from django.urls import path

from catalog import api

urlpatterns = [
    path("gpus", api.GpusView.as_view(), name="api-gpus"),
    path("gpus/<str:slug>", api.GpuView.as_view(), name="api-gpu"),
    path("machines", api.MachinesView.as_view(), name="api-machines"),
    path("machines/<int:machine_id>", api.MachineView.as_view(), name="api-machine"),
    path("options", api.OptionsView.as_view(), name="api-options"),
    path("options/<str:slug>", api.OptionView.as_view(), name="api-option"),
]
