//! How many bytes of each device TensorFlow's buffers take: `tf.config.experimental.get_memory_info`. The functions that
//! make and destroy buffers are replaced in the table that TensorFlow gets, and the plugin's are called from here. A
//! buffer counts from when it is made until it is destroyed. Knows nothing of TensorFlow.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use pjrt_abi::args::{
    Args, BufferCopyToDeviceArgs, BufferCopyToMemoryArgs, BufferDestroyArgs, BufferDeviceArgs,
    BufferOnDeviceSizeInBytesArgs, ClientBufferFromHostBufferArgs, ExecutableDestroyArgs,
    ExecutableNumOutputsArgs, LoadedExecutableDestroyArgs, LoadedExecutableExecuteArgs,
    LoadedExecutableGetExecutableArgs,
};
use pjrt_abi::caller::{Failed, call};
use pjrt_abi::{ApiRef, Buffer, Device, Error, LoadedExecutable, RawFunction, Slot};

use crate::{contained, plugin};

/// Bytes of a device that buffers take.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Now.
    pub(crate) current: usize,
    /// The most at once since the beginning or the last [`reset_peak`].
    pub(crate) peak: usize,
}

/// What is known of live objects, by their addresses.
#[derive(Default)]
struct Ledger {
    /// The device and the bytes of every buffer.
    buffers: HashMap<usize, (usize, usize)>,
    /// By device.
    usage: HashMap<usize, Usage>,
    /// How many results each program has.
    results: HashMap<usize, usize>,
}

impl Ledger {
    fn made(&mut self, buffer: usize, device: usize, bytes: usize) {
        // A buffer whose address is known was destroyed where this library did not see it.
        self.destroyed(buffer);
        self.buffers.insert(buffer, (device, bytes));
        let usage = self.usage.entry(device).or_default();
        usage.current += bytes;
        usage.peak = usage.peak.max(usage.current);
    }

    fn destroyed(&mut self, buffer: usize) {
        if let Some((device, bytes)) = self.buffers.remove(&buffer) {
            self.usage.entry(device).or_default().current -= bytes;
        }
    }
}

fn ledger() -> MutexGuard<'static, Ledger> {
    static LEDGER: LazyLock<Mutex<Ledger>> = LazyLock::new(Mutex::default);
    LEDGER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What buffers take of a device.
pub(crate) fn usage(device: *mut Device) -> Usage {
    ledger().usage.get(&(device as usize)).copied().unwrap_or_default()
}

/// Has the peak begin at what is in use now.
pub(crate) fn reset_peak(device: *mut Device) {
    if let Some(usage) = ledger().usage.get_mut(&(device as usize)) {
        usage.peak = usage.current;
    }
}

/// The functions that stand in TensorFlow's table for the plugin's.
pub(crate) const HOOKS: [(Slot, RawFunction); 6] = [
    (Slot::ClientBufferFromHostBuffer, buffer_from_host_buffer),
    (Slot::LoadedExecutableExecute, execute),
    (Slot::LoadedExecutableDestroy, destroy_executable),
    (Slot::BufferCopyToDevice, copy_to_device),
    (Slot::BufferCopyToMemory, copy_to_memory),
    (Slot::BufferDestroy, destroy_buffer),
];

/// Calls the plugin's function.
///
/// # Safety
/// `args` must be the argument struct of that function, filled in.
unsafe fn forward<A: Args>(args: *mut c_void) -> *mut Error {
    // Without a plugin the table is empty, and nothing comes here.
    let function = plugin::get().ok().and_then(|api| api.function(A::SLOT));
    // SAFETY: the caller's promise.
    function.map_or(std::ptr::null_mut(), |function| unsafe { function(args) })
}

/// Notes a buffer that the plugin has just made and that is TensorFlow's from now on; null is none.
///
/// # Safety
/// `buffer` must be null or live.
pub(crate) unsafe fn note(api: ApiRef, buffer: *mut Buffer) {
    if buffer.is_null() {
        return;
    }
    let mut size = BufferOnDeviceSizeInBytesArgs::new();
    size.buffer = buffer;
    let mut device = BufferDeviceArgs::new();
    device.buffer = buffer;
    // SAFETY: the caller's promise.
    let known = unsafe { call(api, &mut size).and_then(|()| call(api, &mut device)) };
    if known.is_ok() {
        ledger().made(buffer as usize, device.device as usize, size.on_device_size_in_bytes);
    }
}

/// Calls the plugin's function and notes the buffer that it made.
///
/// # Safety
/// As [`forward`]; `made` must read the buffer from the arguments.
unsafe fn forward_and_note<A: Args>(args: *mut c_void, made: impl FnOnce(&A) -> *mut Buffer) -> *mut Error {
    // SAFETY: the caller's promise; without an error the function has filled in what it made.
    contained(A::SLOT.name(), std::ptr::null_mut(), || unsafe {
        let error = forward::<A>(args);
        if error.is_null()
            && let Ok(api) = plugin::get()
        {
            note(api, made(&*args.cast::<A>()));
        }
        error
    })
}

/// `PJRT_Client_BufferFromHostBuffer`
unsafe extern "C" fn buffer_from_host_buffer(args: *mut c_void) -> *mut Error {
    // SAFETY: TensorFlow's argument struct.
    unsafe { forward_and_note::<ClientBufferFromHostBufferArgs>(args, |args| args.buffer) }
}

/// `PJRT_Buffer_CopyToDevice`
unsafe extern "C" fn copy_to_device(args: *mut c_void) -> *mut Error {
    // SAFETY: TensorFlow's argument struct.
    unsafe { forward_and_note::<BufferCopyToDeviceArgs>(args, |args| args.dst_buffer) }
}

/// `PJRT_Buffer_CopyToMemory`
unsafe extern "C" fn copy_to_memory(args: *mut c_void) -> *mut Error {
    // SAFETY: TensorFlow's argument struct.
    unsafe { forward_and_note::<BufferCopyToMemoryArgs>(args, |args| args.dst_buffer) }
}

/// `PJRT_Buffer_Destroy`
unsafe extern "C" fn destroy_buffer(args: *mut c_void) -> *mut Error {
    contained("PJRT_Buffer_Destroy", std::ptr::null_mut(), || {
        // Before it is destroyed: after that another buffer may have its address.
        // SAFETY: TensorFlow's argument struct.
        ledger().destroyed(unsafe { (*args.cast::<BufferDestroyArgs>()).buffer } as usize);
        // SAFETY: as above.
        unsafe { forward::<BufferDestroyArgs>(args) }
    })
}

/// `PJRT_LoadedExecutable_Destroy`
unsafe extern "C" fn destroy_executable(args: *mut c_void) -> *mut Error {
    contained("PJRT_LoadedExecutable_Destroy", std::ptr::null_mut(), || {
        // SAFETY: TensorFlow's argument struct.
        let executable = unsafe { (*args.cast::<LoadedExecutableDestroyArgs>()).executable };
        ledger().results.remove(&(executable as usize));
        // SAFETY: as above.
        unsafe { forward::<LoadedExecutableDestroyArgs>(args) }
    })
}

/// `PJRT_LoadedExecutable_Execute`
unsafe extern "C" fn execute(args: *mut c_void) -> *mut Error {
    // SAFETY: TensorFlow's argument struct; without an error there is a list of results for each device.
    contained("PJRT_LoadedExecutable_Execute", std::ptr::null_mut(), || unsafe {
        let error = forward::<LoadedExecutableExecuteArgs>(args);
        let args = &*args.cast::<LoadedExecutableExecuteArgs>();
        if error.is_null()
            && let Ok(api) = plugin::get()
            && let Ok(results) = result_count(api, args.executable)
            && !args.output_lists.is_null()
        {
            for device in 0..args.num_devices {
                let list = *args.output_lists.add(device);
                (0..results).for_each(|at| note(api, *list.add(at)));
            }
        }
        error
    })
}

/// How many results a program has.
///
/// # Safety
/// `loaded` must be live.
unsafe fn result_count(api: ApiRef, loaded: *mut LoadedExecutable) -> Result<usize, Failed> {
    if let Some(&known) = ledger().results.get(&(loaded as usize)) {
        return Ok(known);
    }
    let mut get = LoadedExecutableGetExecutableArgs::new();
    get.loaded_executable = loaded;
    // SAFETY: the caller's promise; the executable behind it is destroyed once, here.
    let count = unsafe {
        call(api, &mut get)?;
        let mut outputs = ExecutableNumOutputsArgs::new();
        outputs.executable = get.executable;
        let counted = call(api, &mut outputs);
        let mut destroy = ExecutableDestroyArgs::new();
        destroy.executable = get.executable;
        call(api, &mut destroy)?;
        counted?;
        outputs.num_outputs
    };
    ledger().results.insert(loaded as usize, count);
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_the_most_at_once_on_one_device() {
        let mut ledger = Ledger::default();
        ledger.made(1, 7, 100);
        ledger.made(2, 7, 50);
        ledger.made(3, 8, 1000);
        ledger.destroyed(1);
        ledger.made(4, 7, 20);
        assert_eq!(ledger.usage[&7], Usage { current: 70, peak: 150 });
        assert_eq!(ledger.usage[&8], Usage { current: 1000, peak: 1000 });
        // What is not known may be destroyed, and an address used again counts once.
        ledger.destroyed(99);
        ledger.made(2, 8, 5);
        assert_eq!(ledger.usage[&7].current, 20);
        assert_eq!(ledger.usage[&8].current, 1005);
    }
}
