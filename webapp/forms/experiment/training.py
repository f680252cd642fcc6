"""The step of the form that says how one model is fitted."""

from functools import partial

from webapp.forms.experiment.description import Field, Group, Option, Section, argument

F = Field
S = partial(argument, "/fit/schedule/kind")
A = partial(argument, "/fit/optimizer")

FIT = Group(
    "Fit",
    (
        F("/fit/epochs", "Epochs", "Far above need, with early stopping."),
        F("/fit/batch_size", "Batch size"),
        F("/fit/optimizer", "Optimizer"),
        F("/fit/learning_rate", "Learning rate"),
        F("/fit/seed", "Seed"),
        F("/fit/shuffle", "Shuffle rows each epoch"),
    ),
)
OPTIMIZER = Group(
    "Optimizer",
    (
        A("weight_decay", "Weight decay", "Times the learning rate, each step."),
        A("momentum", "Momentum"),
        A("nesterov", "Nesterov momentum"),
        A("beta_1", "Beta 1"),
        A("beta_2", "Beta 2"),
        A("rho", "Rho", "Memory of the squared gradients."),
        A("epsilon", "Epsilon"),
        A("initial_accumulator_value", "Accumulator begins with"),
        A("amsgrad", "AMSGrad"),
        A("centered", "Centered by the gradients' mean"),
        A("gradient_accumulation_steps", "Steps to add up", "Gradients of so many batches make one update."),
    ),
    help="What the chosen optimizer takes; its own defaults if left open.",
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
        S("epochs", "Over", "Epochs, a warm-up included; all of the fit if left open."),
        S("first_epochs", "First cosine", "Epochs."),
        S("t_mul", "Each longer by", "A factor."),
        S("m_mul", "Each lower by", "A factor."),
        S("alpha", "Ends at", "A part of the learning rate."),
        S("power", "Power", "1 is a straight line."),
        S("factor", "Factor", "The rate is multiplied by it."),
        S("every", "Every", "So many epochs."),
        S("at", "After epochs", "Ascending, separated by commas.", kind="values"),
        S("monitor", "Watch", kind="measure"),
        S("patience", "Patience", "Epochs without improvement."),
        S("min_delta", "Least improvement"),
        S("cooldown", "Cool down", "Epochs after a cut that do not count."),
        S("min_learning_rate", "Not below"),
    ),
    help="How the learning rate changes. Without one it stays the same.",
    toggle="/fit/schedule",
    initial={"kind": "cosine"},
)
EARLY = Group(
    "Early stopping",
    (
        F("/fit/early_stopping/monitor", "Watch", kind="measure"),
        F("/fit/early_stopping/patience", "Patience", "Epochs without improvement."),
        F("/fit/early_stopping/min_delta", "Least improvement"),
        F("/fit/early_stopping/restore_best", "Keep the best epoch's weights"),
    ),
    toggle="/fit/early_stopping",
    initial={"monitor": "val_loss", "patience": 5},
)
MEASURES = Group(
    "Loss and metrics",
    (
        F("/fit/loss", "Loss", "From the task if left open.", kind="loss"),
        F("/fit/class_weights", "Class weights", "Balanced: each class counts the same in all."),
        F("/fit/metrics", "Metrics", "From the task if none is chosen.", kind="metrics", wide=True),
    ),
)
AUGMENTATION = Group(
    "Vary the images",
    (
        F("/fit/augmentation/flip", "Flip"),
        F("/fit/augmentation/rotation", "Rotation", "Of a full turn, either way: 0.05 is 18°."),
        F("/fit/augmentation/zoom", "Zoom", "Of the size, in or out."),
        F("/fit/augmentation/translation", "Shift", "Of height and width."),
        F("/fit/augmentation/contrast", "Contrast"),
        F("/fit/augmentation/brightness", "Brightness", "Of the range of the pixels."),
    ),
    help="Drawn anew for each image and epoch, while training only. For images.",
    toggle="/fit/augmentation",
    initial={"rotation": 0.05, "translation": 0.1},
)
AVERAGES = Group(
    "Average the weights",
    (
        F("/fit/ema/momentum", "Momentum", "Of the old average, each step."),
        F(
            "/fit/ema/overwrite_frequency",
            "Overwrite every",
            "Steps after which training goes on from the averages; never if left open.",
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
            "Several steps in one compiled call: faster on small models, coarser to stop.",
        ),
    ),
)

TRAINING = Section(
    "training",
    "Training",
    "trending-down",
    "How one model is fitted.",
    (FIT, OPTIMIZER, SCHEDULE, EARLY, MEASURES, AUGMENTATION, AVERAGES, STEPS),
    ("/fit",),
)
