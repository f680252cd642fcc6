from jobs.kinds.base import Facts
from jobs.kinds.quantize.payload import QuantizePayload, QuantizeResult, QuantizeTask
from jobs.messages.reports.quantization import QuantizationReport

QUANTIZE = Facts(
    name="quantize",
    title="Quantization",
    payload=QuantizePayload,
    result=QuantizeResult,
    task=QuantizeTask,
    engine="workers.engine.tasks.quantize.run",
    planned=lambda spec: int(spec.after.quantize is not None),
    evaluates=True,
    candidate="quantize",
    report=QuantizationReport,
    registered_as="quantized",
    usual_starts=2.0,
)
