//! The functions of the device that TensorFlow calls (`TFNPD_Api`). Those for events, allocators and contexts stay null:
//! where a PJRT client does the work TensorFlow does not call them.

use std::ffi::{CStr, c_void};

use pjrt_abi::args::{BufferCopyToMemoryArgs, BufferMemoryArgs};
use pjrt_abi::caller::{Failed, call};
use pjrt_abi::{ApiRef, Buffer, Client};

use crate::shape::{Shape, copy_shape};
use crate::tensorflow::{PluginParams, Status, code};
use crate::{DEVICE_TYPE, client, contained, memory, plugin, release};

/// The operators that TensorFlow compiles for the device: those of its XLA bridge for CPU.
pub(crate) const COMPILATION_DEVICE: &CStr = c"XLA_CPU_JIT";
/// Above CPU and GPU: a program that names no device runs on this one.
const PRIORITY: i32 = 300;
/// Bytes of `TFNPD_PluginParams` up to `is_pluggable_device`, which is what a caller says its size is.
const PARAMS_SIZE: usize = 37;

/// `TFNPD_Api`
#[repr(C)]
pub struct DeviceApi {
    struct_size: usize,
    private: *mut c_void,
    events_allocators_contexts: [*mut c_void; 16],
    same_device_buffer_copy:
        unsafe extern "C" fn(source: *mut Buffer, client: *mut Client, status: *mut Status) -> *mut Buffer,
    device_shape: unsafe extern "C" fn(
        shape: *const Shape,
        data_type: i32,
        use_fast_memory: bool,
        layout_preference: i32,
        device_shape: *mut Shape,
        status: *mut Status,
    ),
    device_count: unsafe extern "C" fn(status: *mut Status) -> i32,
    initialize: unsafe extern "C" fn(status: *mut Status),
}

// SAFETY: never written after it was made; the pointers in it are null.
unsafe impl Sync for DeviceApi {}

static API: DeviceApi = DeviceApi {
    struct_size: size_of::<DeviceApi>(),
    private: std::ptr::null_mut(),
    events_allocators_contexts: [std::ptr::null_mut(); 16],
    same_device_buffer_copy,
    device_shape,
    device_count,
    initialize,
};

/// The functions; always the same address.
pub(crate) fn table() -> *const DeviceApi {
    &raw const API
}

/// Fills in what TensorFlow wants to know of the device.
///
/// # Safety
/// `params` must be null or TensorFlow's struct, of the size that it says.
pub(crate) unsafe fn describe(params: *mut PluginParams) {
    // SAFETY: the caller's promise.
    let Some(params) = (unsafe { params.as_mut() }) else { return };
    if params.struct_size < PARAMS_SIZE {
        return;
    }
    params.device_type = DEVICE_TYPE.as_ptr();
    params.compilation_device_name = COMPILATION_DEVICE.as_ptr();
    params.priority = PRIORITY;
    params.is_pluggable_device = true;
    params.use_pjrt_on_demand_compile = true;
}

/// `TFNPD_GetDeviceCount`
unsafe extern "C" fn device_count(_status: *mut Status) -> i32 {
    contained("TFNPD_GetDeviceCount", 0, || {
        if release::supported().is_none() {
            return 0;
        }
        match plugin::get() {
            Ok(_) => plugin::device_count(),
            Err(reason) => {
                static TOLD: std::sync::Once = std::sync::Once::new();
                TOLD.call_once(|| eprintln!("act: no ACT device: {reason}"));
                0
            }
        }
    })
}

/// `TFNPD_InitPluginInternalDeviceStates`
unsafe extern "C" fn initialize(status: *mut Status) {
    // SAFETY: TensorFlow's status, live during the call.
    contained("TFNPD_InitPluginInternalDeviceStates", (), || unsafe {
        if device_count(status) > 0 {
            client::install(status);
        }
    });
}

/// `TFNPD_XlaShapeToDeviceShapeRepresentation`: a tensor lies on the device as it lies on the host.
unsafe extern "C" fn device_shape(
    shape: *const Shape,
    _data_type: i32,
    _use_fast_memory: bool,
    _layout_preference: i32,
    device_shape: *mut Shape,
    _status: *mut Status,
) {
    // SAFETY: TensorFlow's shape, and room for another.
    contained("TFNPD_XlaShapeToDeviceShapeRepresentation", (), || unsafe {
        device_shape.write(copy_shape(&*shape));
    });
}

/// `TFNPD_SameDevicePjRtBufferCopy`. No kernel of the tested releases asks for such a copy on a device of this kind, where
/// tensors are shared; it is there because the interface has it.
unsafe extern "C" fn same_device_buffer_copy(
    source: *mut Buffer,
    _client: *mut Client,
    status: *mut Status,
) -> *mut Buffer {
    contained("TFNPD_SameDevicePjRtBufferCopy", std::ptr::null_mut(), || {
        // SAFETY: TensorFlow's buffer, made by the plugin and live during the call.
        let copy = plugin::get()
            .map_err(|reason| Failed { code: code::INTERNAL, message: format!("act: {reason}") })
            .and_then(|api| unsafe { copy_in_place(api, source) });
        match copy {
            Ok(copy) => copy,
            Err(failed) => {
                let message = std::ffi::CString::new(failed.message.replace('\0', " ")).unwrap_or_default();
                if let Some(tensorflow) = release::supported() {
                    // SAFETY: TensorFlow's status, live during the call; the message is copied.
                    unsafe { (tensorflow.c.set_status)(status, failed.code, message.as_ptr()) };
                }
                std::ptr::null_mut()
            }
        }
    })
}

/// A copy of a buffer in the memory that it lies in.
///
/// # Safety
/// `source` must be a live buffer of that library's.
unsafe fn copy_in_place(api: ApiRef, source: *mut Buffer) -> Result<*mut Buffer, Failed> {
    let mut own = BufferMemoryArgs::new();
    own.buffer = source;
    // SAFETY: the caller's promise.
    unsafe { call(api, &mut own)? };
    let mut copy = BufferCopyToMemoryArgs::new();
    (copy.buffer, copy.dst_memory) = (source, own.memory);
    // SAFETY: as above; the memory belongs to the buffer's client, and the copy is live.
    unsafe {
        call(api, &mut copy)?;
        memory::note(api, copy.dst_buffer);
    }
    Ok(copy.dst_buffer)
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;

    #[test]
    fn a_copy_in_place_outlives_its_source() {
        let given = std::env::var_os("ACT_XLA_PLUGIN").filter(|path| !path.is_empty()).map(PathBuf::from);
        let path = given.unwrap_or_else(|| {
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../third_party/xla/pjrt_c_api_cpu_plugin.so")
        });
        assert!(path.is_file(), "{} is missing: run ci/install, or set ACT_XLA_PLUGIN", path.display());
        let api = pjrt_abi::load(&path).expect("the carried library");
        // SAFETY: there are no options.
        let client = unsafe { pjrt_abi::caller::Client::create(api, &[]) }.expect("a client");
        let elements: Vec<f32> = (0..1000_u16).map(f32::from).collect();
        let source = client.upload(&elements).expect("a buffer");
        // SAFETY: a live buffer of that library's.
        let copy = unsafe { copy_in_place(api, source.as_ptr()) }.expect("a copy");
        assert_ne!(copy, source.as_ptr());
        drop(source);
        // SAFETY: the copy is nobody else's.
        let copy = unsafe { client.adopt(copy) };
        assert_eq!(copy.download().expect("its elements"), elements);
    }

    #[test]
    fn structs_have_the_sizes_that_the_headers_give() {
        // TFNPD_Api_STRUCT_SIZE of version 0.0.1: 22 pointers. The params: 37 bytes and a flag, padded.
        assert_eq!(size_of::<DeviceApi>(), 22 * 8);
        assert_eq!(std::mem::offset_of!(DeviceApi, same_device_buffer_copy), 18 * 8);
        assert_eq!(std::mem::offset_of!(PluginParams, is_pluggable_device) + 1, PARAMS_SIZE);
        assert_eq!(size_of::<PluginParams>(), 40);
    }

    #[test]
    fn a_process_without_tensorflow_has_no_devices() {
        // SAFETY: the status is not used where there is no TensorFlow.
        assert_eq!(unsafe { device_count(std::ptr::null_mut()) }, 0);
    }
}
