//! Which operators run on the host though XLA has them: those of lists, random generators, checks, and one where XLA is
//! wrong. Data only.
//!
//! Lists of tensors are what loops of `tf.function` and their gradients keep. XLA has no value for a list, so the kernels
//! that TensorFlow makes for the device fail outside of compiled functions. A list here lies in the host's memory with its
//! elements, as a list in the device's would have to have them there.
//!
//! Random generators with state ignore their seeds when XLA compiles them, and XLA maps the bits of those without state
//! to floats in another way. On the host a seed gives the values that it gives on stock TensorFlow; in compiled functions
//! both have XLA's.
//!
//! A check of numbers is nothing to XLA, which hands its operand on; here it fails as it should.
//!
//! The eigenvalues of a Hermitian matrix are complex numbers by their declared type, and real ones by what TensorFlow's
//! XLA bridge computes; what is read for them would not be what was meant.

use std::ffi::{CStr, c_int};

use crate::tensorflow::{COMPLEX64, COMPLEX128, VARIANT};

/// An operator for which there is a kernel here.
pub(crate) struct Operator {
    pub(crate) name: &'static CStr,
    /// All inputs and outputs.
    pub(crate) in_host_memory: &'static [&'static CStr],
    /// The attribute that must have a type (`TF_DataType`), where the operator runs on the device with others.
    pub(crate) only: Option<(&'static CStr, c_int)>,
    /// Whether all inputs are one argument.
    pub(crate) variadic: bool,
    /// Whether a kernel remembers something from one execution to the next.
    pub(crate) has_state: bool,
}

/// A generator, whose seed is an attribute and whose state is in its kernel.
const fn generator(name: &'static CStr, in_host_memory: &'static [&'static CStr]) -> Operator {
    Operator { has_state: true, ..operator(name, in_host_memory) }
}

const fn operator(name: &'static CStr, in_host_memory: &'static [&'static CStr]) -> Operator {
    Operator { name, in_host_memory, only: None, variadic: false, has_state: false }
}

/// The decomposition of Hermitian matrices of a type.
const fn hermitian(element: c_int) -> Operator {
    Operator { only: Some((c"T", element)), ..operator(c"SelfAdjointEigV2", &[c"input", c"e", c"v"]) }
}

pub(crate) const OPERATORS: &[Operator] = &[
    operator(c"EmptyTensorList", &[c"handle", c"element_shape", c"max_num_elements"]),
    operator(c"TensorListConcat", &[c"input_handle", c"tensor", c"lengths"]),
    operator(c"TensorListConcatLists", &[c"input_a", c"input_b", c"output"]),
    operator(
        c"TensorListConcatV2",
        &[c"input_handle", c"element_shape", c"leading_dims", c"tensor", c"lengths"],
    ),
    operator(c"TensorListElementShape", &[c"input_handle", c"element_shape"]),
    operator(c"TensorListFromTensor", &[c"output_handle", c"tensor", c"element_shape"]),
    operator(c"TensorListGather", &[c"input_handle", c"indices", c"element_shape", c"values"]),
    operator(c"TensorListGetItem", &[c"input_handle", c"index", c"element_shape", c"item"]),
    operator(c"TensorListLength", &[c"input_handle", c"length"]),
    operator(c"TensorListPopBack", &[c"input_handle", c"output_handle", c"element_shape", c"tensor"]),
    operator(c"TensorListPushBack", &[c"input_handle", c"output_handle", c"tensor"]),
    operator(c"TensorListPushBackBatch", &[c"input_handles", c"output_handles", c"tensor"]),
    operator(c"TensorListReserve", &[c"handle", c"element_shape", c"num_elements"]),
    operator(c"TensorListResize", &[c"input_handle", c"output_handle", c"size"]),
    operator(c"TensorListScatter", &[c"output_handle", c"tensor", c"indices", c"element_shape"]),
    operator(
        c"TensorListScatterIntoExistingList",
        &[c"input_handle", c"output_handle", c"tensor", c"indices"],
    ),
    operator(
        c"TensorListScatterV2",
        &[c"output_handle", c"tensor", c"indices", c"element_shape", c"num_elements"],
    ),
    operator(c"TensorListSetItem", &[c"input_handle", c"output_handle", c"index", c"item"]),
    operator(c"TensorListSplit", &[c"output_handle", c"tensor", c"element_shape", c"lengths"]),
    operator(c"TensorListStack", &[c"input_handle", c"element_shape", c"tensor"]),
    Operator {
        name: c"AddN",
        in_host_memory: &[c"inputs", c"sum"],
        only: Some((c"T", VARIANT)),
        variadic: true,
        has_state: false,
    },
    Operator {
        name: c"ZerosLike",
        in_host_memory: &[c"x", c"y"],
        only: Some((c"T", VARIANT)),
        variadic: false,
        has_state: false,
    },
    operator(c"CheckNumerics", &[c"tensor", c"output"]),
    operator(c"CheckNumericsV2", &[c"tensor", c"output"]),
    hermitian(COMPLEX64),
    hermitian(COMPLEX128),
    generator(c"Multinomial", &[c"logits", c"num_samples", c"output"]),
    generator(
        c"ParameterizedTruncatedNormal",
        &[c"shape", c"means", c"stdevs", c"minvals", c"maxvals", c"output"],
    ),
    generator(c"RandomShuffle", &[c"value", c"output"]),
    generator(c"RandomStandardNormal", &[c"shape", c"output"]),
    generator(c"RandomUniform", &[c"shape", c"output"]),
    generator(c"RandomUniformInt", &[c"shape", c"minval", c"maxval", c"output"]),
    generator(c"TruncatedNormal", &[c"shape", c"output"]),
    operator(c"StatelessMultinomial", &[c"logits", c"num_samples", c"seed", c"output"]),
    operator(
        c"StatelessParameterizedTruncatedNormal",
        &[c"shape", c"seed", c"means", c"stddevs", c"minvals", c"maxvals", c"output"],
    ),
    operator(c"StatelessRandomNormal", &[c"shape", c"seed", c"output"]),
    operator(c"StatelessRandomNormalV2", &[c"shape", c"key", c"counter", c"alg", c"output"]),
    operator(c"StatelessRandomUniform", &[c"shape", c"seed", c"output"]),
    operator(c"StatelessRandomUniformV2", &[c"shape", c"key", c"counter", c"alg", c"output"]),
    operator(c"StatelessRandomUniformFullInt", &[c"shape", c"seed", c"output"]),
    operator(c"StatelessRandomUniformFullIntV2", &[c"shape", c"key", c"counter", c"alg", c"output"]),
    operator(c"StatelessRandomUniformInt", &[c"shape", c"seed", c"minval", c"maxval", c"output"]),
    operator(
        c"StatelessRandomUniformIntV2",
        &[c"shape", c"key", c"counter", c"alg", c"minval", c"maxval", c"output"],
    ),
    operator(c"StatelessTruncatedNormal", &[c"shape", c"seed", c"output"]),
    operator(c"StatelessTruncatedNormalV2", &[c"shape", c"key", c"counter", c"alg", c"output"]),
];
