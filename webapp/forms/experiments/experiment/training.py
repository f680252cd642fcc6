"""The step for training one model."""

from functools import partial

from webapp.forms.experiments.experiment.description import (
    Field,
    Group,
    Option,
    Section,
    argument,
)

F = Field
S = partial(argument, "/fit/schedule/kind")
A = partial(argument, "/fit/optimizer")

FIT = Group(
    "Fit",
    (
        F("/fit/epochs", "Epochs", "With early stopping, choose more than needed."),
        F("/fit/batch_size", "Batch size", "Keras' own is 32. The fit of a class gets it as batch_size."),
        F("/fit/optimizer", "Optimizer"),
        F("/fit/learning_rate", "Learning rate"),
        F("/fit/seed", "Seed"),
        F("/fit/shuffle", "Shuffle rows each epoch"),
    ),
)
OPTIMIZER = Group(
    "Optimizer",
    (
        A("weight_decay", "Weight decay", "Multiplied by the learning rate, at each step."),
        A("momentum", "Momentum"),
        A("nesterov", "Nesterov momentum"),
        A("beta_1", "Beta 1"),
        A("beta_2", "Beta 2"),
        A("rho", "Rho", "Memory of the squared gradients."),
        A("epsilon", "Epsilon"),
        A("initial_accumulator_value", "Initial accumulator value"),
        A("amsgrad", "AMSGrad"),
        A("centered", "Centered by the gradients' mean"),
        A(
            "gradient_accumulation_steps",
            "Gradient accumulation steps",
            "Batches per update.",
        ),
    ),
    help="Arguments of the selected optimizer. Empty: its default.",
)
SCHEDULE = Group(
    "Learning-rate schedule",
    (
        F(
            "/fit/schedule/kind",
            "Schedule",
            options=(
                Option('"constant"', "constant"),
                Option('"cosine"', "cosine"),
                Option('"warmup_cosine"', "warm-up, then cosine"),
                Option('"cosine_restarts"', "cosine with restarts"),
                Option('"exponential"', "exponential"),
                Option('"polynomial"', "polynomial"),
                Option('"step"', "in equal steps"),
                Option('"piecewise"', "at given epochs"),
                Option('"reduce_on_plateau"', "on a plateau"),
            ),
        ),
        S("warmup_epochs", "Warm-up", "Epochs from 0 up to the learning rate."),
        S("epochs", "Over", "Epochs, including the warm-up. Empty: all epochs of the fit."),
        S("first_epochs", "First cosine", "Epochs."),
        S("t_mul", "Each longer by", "A factor."),
        S("m_mul", "Each lower by", "A factor."),
        S("alpha", "Ends at", "A fraction of the learning rate."),
        S("power", "Power", "1 is a straight line."),
        S("factor", "Factor", "The learning rate is multiplied by it."),
        S("every", "Every", "Epochs."),
        S("at", "After epochs", "Ascending, separated by commas.", kind="values"),
        S("monitor", "Watch", kind="measure"),
        S("patience", "Patience", "Epochs without improvement."),
        S("min_delta", "Minimum improvement"),
        S("cooldown", "Cool down", "Epochs after a reduction that do not count."),
        S("min_learning_rate", "Not below"),
    ),
    help="Changes the learning rate during training. Without a schedule it is constant.",
    toggle="/fit/schedule",
    initial={"kind": "cosine"},
)
EARLY = Group(
    "Early stopping",
    (
        F(
            "/fit/early_stopping/monitor",
            "Watch",
            "Empty: the measure that chooses the best epoch, which is the search's objective.",
            kind="measure",
        ),
        F("/fit/early_stopping/patience", "Patience", "Epochs without improvement."),
        F("/fit/early_stopping/min_delta", "Minimum improvement"),
        F("/fit/early_stopping/restore_best", "Keep the best epoch's weights"),
    ),
    toggle="/fit/early_stopping",
    initial={"patience": 5},
)
MEASURES = Group(
    "Loss and metrics",
    (
        F("/fit/loss", "Loss", "Empty: the default of the task.", kind="loss"),
        F("/fit/class_weights", "Class weights", "Balanced: all classes have the same total weight."),
        F("/fit/metrics", "Metrics", "None selected: the defaults of the task.", kind="metrics", wide=True),
    ),
)
AUGMENTATION = Group(
    "Augment the images",
    (
        F("/fit/augmentation/flip", "Flip"),
        F(
            "/fit/augmentation/rotation",
            "Rotation",
            "Fraction of a full turn, either way: 0.05 is 18°.",
        ),
        F("/fit/augmentation/zoom", "Zoom", "Fraction of the size, in or out."),
        F("/fit/augmentation/translation", "Shift", "Fraction of height and width."),
        F("/fit/augmentation/contrast", "Contrast"),
        F("/fit/augmentation/brightness", "Brightness", "Fraction of the pixel range."),
    ),
    help="Random for each image and epoch, during training only. For image data.",
    toggle="/fit/augmentation",
    initial={"rotation": 0.05, "translation": 0.1},
)
AVERAGES = Group(
    "Average the weights",
    (
        F("/fit/ema/momentum", "Momentum", "Weight of the old average, at each step."),
        F(
            "/fit/ema/overwrite_frequency",
            "Overwrite every",
            "Steps between replacements of the weights by their averages. Empty: never.",
        ),
    ),
    help="The averages are validated and become the model.",
    toggle="/fit/ema",
    initial={"momentum": 0.99},
)
STEPS = Group(
    "Clipping and steps",
    (
        F("/fit/clipnorm", "Clip each gradient to norm", "Choose at most one way to clip."),
        F("/fit/global_clipnorm", "Clip all together to norm"),
        F("/fit/clipvalue", "Clip each entry to"),
        F(
            "/fit/steps_per_execution",
            "Steps per execution",
            "In one compiled call; pausing waits for its end. On one device, 1 chooses the number by timing.",
        ),
    ),
)

TRAINING = Section(
    "training",
    "Training",
    "trending-down",
    "The training of one model.",
    (FIT, OPTIMIZER, SCHEDULE, EARLY, MEASURES, AUGMENTATION, AVERAGES, STEPS),
    ("/fit",),
)
