from jobs.kinds.base import Facts
from jobs.kinds.chosen_ensemble.payload import ChosenEnsemblePayload
from jobs.kinds.roots import RootResult

CHOSEN_ENSEMBLE = Facts(
    name="chosen_ensemble",
    title="Ensemble",
    payload=ChosenEnsemblePayload,
    result=RootResult,
    public_as="ensemble",
    has_steps=True,
    retrains_chosen=True,
)
