"""Names that the product proposes for experiments, and the models' names that follow from them."""

SEARCH_OF_TEMPLATES = "A good model for {dataset}"
EXPERIMENT = "{dataset} model"
"""It fits a search and a single training."""
_PROPOSED = (SEARCH_OF_TEMPLATES, EXPERIMENT, "{dataset} search")
"""The last one was proposed by earlier releases."""


def experiment(dataset: str) -> str:
    """Return the name of a new experiment with a data set."""
    return EXPERIMENT.format(dataset=dataset)


def fine_tuning(model: str) -> str:
    """Return the name of a new experiment that trains a version of a model further."""
    return f"{model} fine-tuned"


def search_of_templates(dataset: str) -> str:
    """Return the name of an experiment of "Find me a good model"."""
    return SEARCH_OF_TEMPLATES.format(dataset=dataset)


def model(name: str, dataset: str) -> str:
    """Return the name after which a model is named: the experiment's, or its data's if it was proposed."""
    return dataset if name in {proposed.format(dataset=dataset) for proposed in _PROPOSED} else name
