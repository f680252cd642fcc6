"""Defines the protobuf messages for KerasTuner's distributed mode (version 1.4).

They are defined here instead of imported, because importing KerasTuner's generated modules loads Keras. A
test compares every field with KerasTuner's own.
"""

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PACKAGE = "keras_tuner"
SERVICE = "keras_tuner.Oracle"

_Fields = tuple[str, ...]

_ENUMS: dict[str, _Fields] = {
    "Sampling": ("NONE", "LINEAR", "LOG", "REVERSE_LOG"),
    "TrialStatus": ("UNKNOWN", "RUNNING", "IDLE", "INVALID", "STOPPED", "COMPLETED", "FAILED"),
}

# A field is `name type`, numbered by its position; `*` before the type: repeated, `?`: member of a oneof.
_NUMBER: _Fields = ("name string", "min_value {0}", "max_value {0}", "step {0}", "sampling Sampling")
_MESSAGES: dict[str, _Fields] = {
    "Value": ("int_value ?sint64", "float_value ?double", "string_value ?string", "boolean_value ?bool"),
    "Condition": ("parent ?Condition.Parent",),
    "Condition.Parent": ("name string", "values *Value"),
    "Float": (*(f.format("double") for f in _NUMBER), "default double", "conditions *Condition"),
    "Int": (*(f.format("sint64") for f in _NUMBER), "default sint64", "conditions *Condition"),
    "Choice": ("name string", "values *Value", "default Value", "ordered bool", "conditions *Condition"),
    "Boolean": ("name string", "default bool", "conditions *Condition"),
    "Fixed": ("name string", "value Value", "conditions *Condition"),
    "HyperParameters": ("space HyperParameters.Space", "values HyperParameters.Values"),
    "HyperParameters.Space": (
        "float_space *Float",
        "int_space *Int",
        "choice_space *Choice",
        "boolean_space *Boolean",
        "fixed_space *Fixed",
    ),
    "HyperParameters.Values": ("values *HyperParameters.Values.ValuesEntry",),
    "HyperParameters.Values.ValuesEntry": ("key string", "value Value"),
    "MetricObservation": ("value *float", "step int64"),
    "MetricHistory": ("observations *MetricObservation", "maximize bool"),
    "MetricsTracker": ("metrics *MetricsTracker.MetricsEntry",),
    "MetricsTracker.MetricsEntry": ("key string", "value MetricHistory"),
    "Trial": (
        "hyperparameters HyperParameters",
        "trial_id string",
        "status TrialStatus",
        "metrics MetricsTracker",
        "score Trial.Score",
    ),
    "Trial.Score": ("value float", "step int64"),
    "GetSpaceRequest": (),
    "GetSpaceResponse": ("hyperparameters HyperParameters",),
    "UpdateSpaceRequest": ("hyperparameters HyperParameters",),
    "UpdateSpaceResponse": (),
    "CreateTrialRequest": ("tuner_id string",),
    "CreateTrialResponse": ("trial Trial",),
    "UpdateTrialRequest": ("trial_id string", "metrics *UpdateTrialRequest.MetricsEntry", "step int64"),
    "UpdateTrialRequest.MetricsEntry": ("key string", "value double"),
    "UpdateTrialResponse": ("trial Trial",),
    "EndTrialRequest": ("trial Trial",),
    "EndTrialResponse": (),
    "GetTrialRequest": ("trial_id string",),
    "GetTrialResponse": ("trial Trial",),
    "GetBestTrialsRequest": ("num_trials int64",),
    "GetBestTrialsResponse": ("trials *Trial",),
}

CALLS = ("GetSpace", "UpdateSpace", "CreateTrial", "UpdateTrial", "EndTrial", "GetTrial", "GetBestTrials")

_Field = descriptor_pb2.FieldDescriptorProto


def _file_descriptor() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name="trainyard/chief.proto", package=PACKAGE, syntax="proto3")
    for name, members in _ENUMS.items():
        enum = file.enum_type.add(name=name)
        for number, member in enumerate(members):
            enum.value.add(name=member, number=number)
    messages: dict[str, Any] = {}
    for name, fields in _MESSAGES.items():
        outer, _, local_name = name.rpartition(".")
        message = (
            messages[outer].nested_type.add(name=local_name)
            if outer
            else file.message_type.add(name=local_name)
        )
        message.options.map_entry = local_name.endswith("Entry")
        for number, field in enumerate(fields, start=1):
            _add(message, field, number)
        messages[name] = message
    return file


def _add(message: Any, text: str, number: int) -> None:
    name, kind = text.split()
    field = message.field.add(name=name, number=number, label=_Field.LABEL_OPTIONAL)
    if kind.startswith("*"):
        field.label = _Field.LABEL_REPEATED
    if kind.startswith("?"):
        if not message.oneof_decl:
            message.oneof_decl.add(name="kind")
        field.oneof_index = 0
    kind = kind.lstrip("*?")
    if kind in _ENUMS:
        field.type, field.type_name = _Field.TYPE_ENUM, f".{PACKAGE}.{kind}"
    elif kind in _MESSAGES:
        field.type, field.type_name = _Field.TYPE_MESSAGE, f".{PACKAGE}.{kind}"
    else:
        field.type = _Field.Type.Value(f"TYPE_{kind.upper()}")


# A separate pool, because KerasTuner's modules may be loaded in the same process.
POOL = descriptor_pool.DescriptorPool()
POOL.Add(_file_descriptor())


def message(name: str) -> Any:
    """Return the class for the message `name`."""
    return message_factory.GetMessageClass(POOL.FindMessageTypeByName(f"{PACKAGE}.{name}"))


def number_of(enum: str, member: str) -> int:
    return _ENUMS[enum].index(member)


def member_of(enum: str, number: int) -> str:
    """Return an enum member's name; for an unknown number, the name for 0."""
    members = _ENUMS[enum]
    return members[number] if 0 <= number < len(members) else members[0]
