//! TensorFlow's C interface as far as this library uses it, looked up in the process. Declares and looks up, nothing
//! else.

use std::ffi::{CStr, c_char, c_int, c_void};

use crate::dynamic_symbols::LoadedLibrary;

/// `TF_Status`
#[repr(C)]
pub struct Status {
    _private: [u8; 0],
}

/// `TF_Tensor`
#[repr(C)]
pub(crate) struct Tensor {
    _private: [u8; 0],
}

/// `TF_KernelBuilder`
#[repr(C)]
pub(crate) struct KernelBuilder {
    _private: [u8; 0],
}

/// `TF_OpKernelContext`
#[repr(C)]
pub(crate) struct KernelContext {
    _private: [u8; 0],
}

/// `TF_OpKernelConstruction`
#[repr(C)]
pub(crate) struct KernelConstruction {
    _private: [u8; 0],
}

/// `TFE_ContextOptions`
#[repr(C)]
pub(crate) struct EagerOptions {
    _private: [u8; 0],
}

/// `TFE_Context`
#[repr(C)]
pub(crate) struct EagerContext {
    _private: [u8; 0],
}

/// `TFE_Op`
#[repr(C)]
pub(crate) struct EagerOp {
    _private: [u8; 0],
}

/// `TFE_TensorHandle`
#[repr(C)]
pub(crate) struct TensorHandle {
    _private: [u8; 0],
}

/// `TF_Buffer`
#[repr(C)]
pub(crate) struct ByteBuffer {
    pub(crate) data: *const c_void,
    pub(crate) length: usize,
    deallocator: Option<unsafe extern "C" fn(data: *mut c_void, length: usize)>,
}

/// `TFNPD_PluginParams`
#[repr(C)]
pub struct PluginParams {
    /// Size of this struct in bytes without its tail padding.
    pub(crate) struct_size: usize,
    pub(crate) extension: *mut c_void,
    /// Out: the name of the devices.
    pub(crate) device_type: *const c_char,
    /// Out: the set of operators that programs for the device are made of.
    pub(crate) compilation_device_name: *const c_char,
    /// Out: operators without a device go to the type of the highest priority; CPU has 70, GPU 210.
    pub(crate) priority: i32,
    /// Out: whether Python knows the name of the device.
    pub(crate) is_pluggable_device: bool,
    /// Out: whether operators outside of compiled functions are compiled one by one.
    pub(crate) use_pjrt_on_demand_compile: bool,
}

/// `TF_Code`, which is that of PJRT's errors.
pub(crate) mod code {
    pub(crate) const OK: i32 = 0;
    pub(crate) const INVALID_ARGUMENT: i32 = 3;
    pub(crate) const INTERNAL: i32 = 13;
}

/// `TF_INT32`
pub(crate) const INT32: i32 = 3;
/// `TF_COMPLEX64`
pub(crate) const COMPLEX64: i32 = 8;
/// `TF_COMPLEX128`
pub(crate) const COMPLEX128: i32 = 18;
/// `TF_VARIANT`
pub(crate) const VARIANT: i32 = 21;

pub(crate) type Create = unsafe extern "C" fn(construction: *mut KernelConstruction) -> *mut c_void;
pub(crate) type Delete = unsafe extern "C" fn(kernel: *mut c_void);
pub(crate) type Compute = unsafe extern "C" fn(kernel: *mut c_void, context: *mut KernelContext);

/// The functions, under the names that they have in C.
#[derive(Clone, Copy)]
pub(crate) struct TensorFlow {
    /// Where the C++ functions are.
    pub(crate) library: LoadedLibrary,
    pub(crate) new_status: unsafe extern "C" fn() -> *mut Status,
    pub(crate) delete_status: unsafe extern "C" fn(*mut Status),
    pub(crate) set_status: unsafe extern "C" fn(*mut Status, code: c_int, message: *const c_char),
    pub(crate) get_code: unsafe extern "C" fn(*const Status) -> c_int,
    pub(crate) message: unsafe extern "C" fn(*const Status) -> *const c_char,
    pub(crate) delete_tensor: unsafe extern "C" fn(*mut Tensor),
    pub(crate) tensor_data: unsafe extern "C" fn(*const Tensor) -> *mut c_void,
    pub(crate) tensor_size: unsafe extern "C" fn(*const Tensor) -> usize,
    pub(crate) new_kernel_builder: unsafe extern "C" fn(
        operator: *const c_char,
        device: *const c_char,
        create: Option<Create>,
        compute: Option<Compute>,
        delete: Option<Delete>,
    ) -> *mut KernelBuilder,
    pub(crate) type_constraint: unsafe extern "C" fn(*mut KernelBuilder, *const c_char, c_int, *mut Status),
    pub(crate) host_memory: unsafe extern "C" fn(*mut KernelBuilder, *const c_char),
    pub(crate) kernel_priority: unsafe extern "C" fn(*mut KernelBuilder, i32),
    pub(crate) register_kernel: unsafe extern "C" fn(*const c_char, *mut KernelBuilder, *mut Status),
    pub(crate) get_input: unsafe extern "C" fn(*mut KernelContext, c_int, *mut *mut Tensor, *mut Status),
    pub(crate) set_output: unsafe extern "C" fn(*mut KernelContext, c_int, *const Tensor, *mut Status),
    pub(crate) fail_kernel: unsafe extern "C" fn(*mut KernelContext, *mut Status),
    pub(crate) fail_construction: unsafe extern "C" fn(*mut KernelConstruction, *mut Status),
    pub(crate) node_definition: unsafe extern "C" fn(*mut KernelConstruction, *mut Status) -> *mut ByteBuffer,
    pub(crate) input_count: unsafe extern "C" fn(*mut KernelContext) -> c_int,
    pub(crate) output_count: unsafe extern "C" fn(*mut KernelContext) -> c_int,
    pub(crate) delete_buffer: unsafe extern "C" fn(*mut ByteBuffer),
    pub(crate) new_eager_options: unsafe extern "C" fn() -> *mut EagerOptions,
    pub(crate) set_eager_config:
        unsafe extern "C" fn(*mut EagerOptions, config: *const c_void, size: usize, *mut Status),
    pub(crate) delete_eager_options: unsafe extern "C" fn(*mut EagerOptions),
    pub(crate) new_eager_context: unsafe extern "C" fn(*const EagerOptions, *mut Status) -> *mut EagerContext,
    pub(crate) new_op: unsafe extern "C" fn(*mut EagerContext, *const c_char, *mut Status) -> *mut EagerOp,
    pub(crate) delete_op: unsafe extern "C" fn(*mut EagerOp),
    pub(crate) set_op_device: unsafe extern "C" fn(*mut EagerOp, *const c_char, *mut Status),
    pub(crate) set_op_attribute: unsafe extern "C" fn(
        *mut EagerOp,
        name: *const c_char,
        value: *const c_void,
        size: usize,
        *mut Status,
    ),
    pub(crate) add_op_input: unsafe extern "C" fn(*mut EagerOp, *mut TensorHandle, *mut Status),
    pub(crate) add_op_input_list:
        unsafe extern "C" fn(*mut EagerOp, *mut *mut TensorHandle, count: c_int, *mut Status),
    pub(crate) execute:
        unsafe extern "C" fn(*mut EagerOp, results: *mut *mut TensorHandle, count: *mut c_int, *mut Status),
    pub(crate) new_handle: unsafe extern "C" fn(*const Tensor, *mut Status) -> *mut TensorHandle,
    pub(crate) delete_handle: unsafe extern "C" fn(*mut TensorHandle),
    pub(crate) resolve_handle: unsafe extern "C" fn(*mut TensorHandle, *mut Status) -> *mut Tensor,
}

/// Where one of TensorFlow's libraries has a function.
fn function(libraries: &[LoadedLibrary], name: &'static CStr) -> Result<*mut c_void, &'static CStr> {
    libraries.iter().find_map(|library| library.symbol(name)).ok_or(name)
}

/// The libraries of a TensorFlow in this process.
fn libraries() -> Option<[LoadedLibrary; 2]> {
    Some([
        LoadedLibrary::find(c"libtensorflow_cc.so.2")?,
        LoadedLibrary::find(c"libtensorflow_framework.so.2")?,
    ])
}

/// What TensorFlow says its version is; `None` where there is none in this process.
pub(crate) fn version() -> Option<String> {
    let address = function(&libraries()?, c"TF_Version").ok()?;
    // SAFETY: TensorFlow exports this name with this type.
    let version: unsafe extern "C" fn() -> *const c_char = unsafe { std::mem::transmute(address) };
    // SAFETY: it takes nothing and returns a static null-terminated string.
    Some(unsafe { CStr::from_ptr(version()) }.to_string_lossy().into_owned())
}

impl TensorFlow {
    /// The functions of the TensorFlow in this process.
    ///
    /// # Errors
    /// The first function that is missing, or the library.
    #[allow(clippy::missing_transmute_annotations, reason = "the fields say the types")]
    pub(crate) fn find() -> Result<TensorFlow, &'static CStr> {
        let libraries = libraries().ok_or(c"libtensorflow_cc.so.2")?;
        let find = |name| function(&libraries, name);
        // SAFETY: TensorFlow's headers declare each of these names with the type of its field.
        unsafe {
            use std::mem::transmute as typed;
            Ok(TensorFlow {
                library: libraries[0],
                new_status: typed(find(c"TF_NewStatus")?),
                delete_status: typed(find(c"TF_DeleteStatus")?),
                set_status: typed(find(c"TF_SetStatus")?),
                get_code: typed(find(c"TF_GetCode")?),
                message: typed(find(c"TF_Message")?),
                delete_tensor: typed(find(c"TF_DeleteTensor")?),
                tensor_data: typed(find(c"TF_TensorData")?),
                tensor_size: typed(find(c"TF_TensorByteSize")?),
                new_kernel_builder: typed(find(c"TF_NewKernelBuilder")?),
                type_constraint: typed(find(c"TF_KernelBuilder_TypeConstraint")?),
                host_memory: typed(find(c"TF_KernelBuilder_HostMemory")?),
                kernel_priority: typed(find(c"TF_KernelBuilder_Priority")?),
                register_kernel: typed(find(c"TF_RegisterKernelBuilder")?),
                get_input: typed(find(c"TF_GetInput")?),
                set_output: typed(find(c"TF_SetOutput")?),
                fail_kernel: typed(find(c"TF_OpKernelContext_Failure")?),
                fail_construction: typed(find(c"TF_OpKernelConstruction_Failure")?),
                node_definition: typed(find(c"TF_OpKernelConstruction_GetNodeDef")?),
                input_count: typed(find(c"TF_NumInputs")?),
                output_count: typed(find(c"TF_NumOutputs")?),
                delete_buffer: typed(find(c"TF_DeleteBuffer")?),
                new_eager_options: typed(find(c"TFE_NewContextOptions")?),
                set_eager_config: typed(find(c"TFE_ContextOptionsSetConfig")?),
                delete_eager_options: typed(find(c"TFE_DeleteContextOptions")?),
                new_eager_context: typed(find(c"TFE_NewContext")?),
                new_op: typed(find(c"TFE_NewOp")?),
                delete_op: typed(find(c"TFE_DeleteOp")?),
                set_op_device: typed(find(c"TFE_OpSetDevice")?),
                set_op_attribute: typed(find(c"TFE_OpSetAttrValueProto")?),
                add_op_input: typed(find(c"TFE_OpAddInput")?),
                add_op_input_list: typed(find(c"TFE_OpAddInputList")?),
                execute: typed(find(c"TFE_Execute")?),
                new_handle: typed(find(c"TFE_NewTensorHandle")?),
                delete_handle: typed(find(c"TFE_DeleteTensorHandle")?),
                resolve_handle: typed(find(c"TFE_TensorHandleResolve")?),
            })
        }
    }
}

/// What a status says, if it is not success.
///
/// # Safety
/// `status` must be live.
pub(crate) unsafe fn message_of(c: &TensorFlow, status: *const Status) -> Option<String> {
    // SAFETY: the caller's promise; the message lives as long as the status.
    unsafe {
        ((c.get_code)(status) != code::OK)
            .then(|| CStr::from_ptr((c.message)(status)).to_string_lossy().into_owned())
    }
}
