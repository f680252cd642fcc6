"""Lists the operations that models from other sources may contain: `x + y`, `x[:, 0]`, `keras.ops`.

They only compute from their inputs and numbers. Two sorts are missing: those that call a function, which
would run code from the file, and those whose output size depends on values, which XLA cannot
compile.
"""

_NUMPY = """
    Abs Absolute Fabs Add All AllClose Any Amax Amin Append Arccos Arccosh Arcsin Arcsinh Arctan Arctan2
    Arctanh Argmax Argmin Argpartition Argsort ArraySplit Average BitwiseAnd BitwiseInvert
    BitwiseLeftShift BitwiseNot BitwiseOr BitwiseRightShift BitwiseXor BroadcastTo Cbrt Ceil Clip
    Concatenate Copy Corrcoef Correlate Cos Cosh CountNonzero Cross Cumprod Cumsum Deg2rad Diag Diagonal
    Diff Digitize Divide DivideNoNan Dot Dsplit Dstack Einsum Equal Exp Exp2 ExpandDims Expm1 Flip
    Fliplr Flipud Floor FloorDivide Fmax Fmin Fmod FullLike Gcd GetItem Greater GreaterEqual Heaviside
    Hsplit Hstack Hypot I0 Inner IsIn Isclose Isfinite Isinf Isnan Isneginf Isposinf Isreal Kron Lcm
    Ldexp LeftShift Less LessEqual Log Log10 Log1p Log2 Logaddexp Logaddexp2 LogicalAnd LogicalNot
    LogicalOr LogicalXor Matmul Max Maximum Mean Median Meshgrid Min Minimum Mod Moveaxis Multiply
    NanToNum Nanargmax Nanargmin Nancumprod Nancumsum Nanmax Nanmean Nanmedian Nanmin Nanpercentile
    Nanprod Nanquantile Nanstd Nansum Nanvar Negative Nextafter NotEqual OnesLike Outer Pad Percentile
    Power Prod Ptp Quantile Rad2deg Ravel Reciprocal Repeat Reshape RightShift Roll Rot90 Round
    SearchSorted Select Sign Signbit Sin Sinc Sinh Sort Split Sqrt Square Squeeze Stack Std Subtract Sum
    Swapaxes Take TakeAlongAxis Tan Tanh Tensordot Tile Trace Transpose Trapezoid Tril Triu TrueDivide
    Trunc Var Vdot Vsplit Vstack Where ZerosLike
"""
_MATH = """
    CDist Erf Erfc Erfinv ExtractSequences FFT FFT2 IFFT2 IRFFT ISTFT InTopK Logdet Logsumexp RFFT Rsqrt
    STFT SegmentMax SegmentReduction SegmentSum TopK
"""
_NN = """
    AdaptiveAveragePool AdaptiveMaxPool AveragePool BatchNorm Celu Conv ConvTranspose DepthToSpace
    DepthwiseConv DotProductAttention Elu Fold Gelu Glu HardShrink HardSigmoid HardSilu HardTanh
    LayerNorm LeakyRelu LogSigmoid LogSoftmax MaxPool Moments MultiHot Normalize OneHot RMSNorm Relu
    Relu6 Selu SeparableConv Sigmoid Silu SoftShrink Softmax Softplus Softsign SpaceToDepth SparsePlus
    SparseSigmoid Sparsemax Squareplus TanhShrink Threshold Unfold
"""
_LINALG = "Cholesky CholeskyInverse Det Eigh Inv Lstsq LuFactor Norm Pinv Qr SVD Solve SolveTriangular"
_IMAGE = """
    CropImages ExtractPatches GaussianBlur HSVToRGB PadImages RGBToGrayscale RGBToHSV Resize
    ScaleAndTranslate SobelEdges
"""
_CORE = "Cast ConvertToTensor SaturateCast Scatter ScatterUpdate Slice SliceUpdate StopGradient Unstack"

OPERATIONS = {
    f"keras.src.ops.{module}": frozenset(names.split())
    for module, names in (
        ("numpy", _NUMPY),
        ("math", _MATH),
        ("nn", _NN),
        ("linalg", _LINALG),
        ("image", _IMAGE),
        ("core", _CORE),
        ("einops", "Rearrange"),
    )
}
"""Names of classes by module."""
