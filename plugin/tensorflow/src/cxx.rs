//! The C++ functions of TensorFlow that no C function stands for, called by the Itanium ABI of x86-64: class types that
//! are not trivially copyable go by address, also as results. Knows the layouts of the few classes involved, each
//! as in libstdc++ and in the Abseil of the tested releases.

use std::ffi::{CStr, c_void};
use std::mem::MaybeUninit;

use pjrt_abi::Api;

use crate::dynamic_symbols::LoadedLibrary;
use crate::tensorflow::KernelContext;

/// `std::unique_ptr<xla::PjRtClient>`: one pointer.
type UniquePointer = *mut c_void;

/// `absl::Status`: one word, 1 for success; other odd words hold a code, even ones point to a message.
type StatusWord = usize;
const STATUS_OK: StatusWord = 1;

/// `absl::StatusOr<std::unique_ptr<xla::PjRtClient>>`
#[repr(C)]
struct StatusOrClient {
    status: StatusWord,
    client: UniquePointer,
}

/// `std::shared_ptr` to nothing.
#[repr(C)]
struct SharedPointer([usize; 2]);

/// The beginning of an `absl::flat_hash_map` without elements: capacity, size, and the address of the control bytes,
/// of which an empty map has one group: a sentinel, else empty slots. What follows is not read where nothing is held.
#[repr(C)]
struct EmptyMap {
    capacity: usize,
    size: usize,
    control: *const i8,
    slots: *const c_void,
    rest: [usize; 4],
}

static EMPTY_GROUP: [i8; 32] = {
    let mut group = [-128; 32];
    group[0] = -1;
    group[16] = -1;
    group
};

/// A `std::string` of up to 15 bytes, which lie in the object itself.
#[repr(C)]
pub(crate) struct ShortString {
    data: *const u8,
    size: usize,
    bytes: [u8; 16],
}

impl ShortString {
    /// Writes the text into `place`, which must not be moved afterwards: the object points into itself.
    pub(crate) fn write<'a>(place: &'a mut MaybeUninit<ShortString>, text: &CStr) -> &'a ShortString {
        let text = text.to_bytes();
        let size = text.len().min(15);
        let mut bytes = [0; 16];
        bytes[..size].copy_from_slice(&text[..size]);
        let string = place.write(ShortString { data: std::ptr::null(), size, bytes });
        string.data = string.bytes.as_ptr();
        string
    }
}

type WrapClient = unsafe extern "C" fn(
    result: *mut StatusOrClient,
    api: *const Api,
    options: *const EmptyMap,
    key_value_store: *mut SharedPointer,
) -> *mut StatusOrClient;

type SetClient = unsafe extern "C" fn(
    result: *mut StatusWord,
    device_type: *const ShortString,
    client: *mut UniquePointer,
) -> *mut StatusWord;

/// `tensorflow::XlaOpRegistry::DeviceRegistration`
#[repr(C)]
struct DeviceRegistration {
    compilation_device: ShortString,
    /// `AutoclusteringPolicy`
    autoclustering: i32,
    cluster_resource_variables_unsafely: bool,
    cluster_stacks: bool,
    cluster_tensor_arrays: bool,
    cluster_random_generators: bool,
    cluster_control_triggers: bool,
    elide_assertions: bool,
    cluster_variants: bool,
    cluster_slow_operators: bool,
    cluster_inaccurate_operators: bool,
}

/// `AutoclusteringPolicy::kIfEnabledGlobally`
const CLUSTER_IF_ENABLED: i32 = 1;

type RegisterCompilationDevice =
    unsafe extern "C" fn(device_type: *const ShortString, registration: *const DeviceRegistration);

type GetOpsFlags = unsafe extern "C" fn() -> *mut c_void;

/// `Compute` of a class of kernels; the C interface's context of a kernel is the address of the C++ one.
type ComputeMember = unsafe extern "C" fn(this: *mut c_void, context: *mut KernelContext);

/// The functions.
#[derive(Clone, Copy)]
pub(crate) struct Functions {
    /// `xla::WrapClientAroundCApi`
    wrap_client: WrapClient,
    /// `tensorflow::SetPjRtClientInTFGlobalResourceManager`
    set_client: SetClient,
    /// `tensorflow::XlaOpRegistry::RegisterCompilationDevice`
    register_compilation_device: RegisterCompilationDevice,
    /// `tensorflow::GetXlaOpsCommonFlags`
    get_ops_flags: GetOpsFlags,
    /// `tensorflow::MergeOp::Compute`
    merge: ComputeMember,
}

/// Why TensorFlow has no client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InstallError {
    /// The plugin made none, or one that TensorFlow does not take.
    NotMade,
    /// TensorFlow has one already.
    NotTaken,
}

impl Functions {
    /// The functions in TensorFlow's library.
    ///
    /// # Errors
    /// The first that is missing, by the beginning of its mangled name.
    pub(crate) fn find(library: LoadedLibrary) -> Result<Functions, &'static CStr> {
        const WRAP: &CStr = c"_ZN3xla20WrapClientAroundCApiEPK8PJRT_ApiRKN4absl";
        const SET: &CStr =
            c"_ZN10tensorflow38SetPjRtClientInTFGlobalResourceManagerERKN3tsl10DeviceTypeESt10unique_ptr";
        const REGISTER: &CStr = c"_ZN10tensorflow13XlaOpRegistry25RegisterCompilationDeviceERKNSt";
        const FLAGS: &CStr = c"_ZN10tensorflow20GetXlaOpsCommonFlagsEv";
        const MERGE: &CStr = c"_ZN10tensorflow7MergeOp7ComputeEPNS_15OpKernelContextE";
        let text = |name: &'static CStr| name.to_str().unwrap_or_default();
        let [wrap, set, register] = library.symbols_by_prefix([text(WRAP), text(SET), text(REGISTER)]);
        let (wrap, set, register) = (wrap.ok_or(WRAP)?, set.ok_or(SET)?, register.ok_or(REGISTER)?);
        let flags = library.symbol(FLAGS).ok_or(FLAGS)?;
        let merge = library.symbol(MERGE).ok_or(MERGE)?;
        // SAFETY: the mangled names tell the parameters; the results are those of the tested releases.
        unsafe {
            Ok(Functions {
                wrap_client: std::mem::transmute::<*mut c_void, WrapClient>(wrap),
                set_client: std::mem::transmute::<*mut c_void, SetClient>(set),
                register_compilation_device: std::mem::transmute::<*mut c_void, RegisterCompilationDevice>(
                    register,
                ),
                get_ops_flags: std::mem::transmute::<*mut c_void, GetOpsFlags>(flags),
                merge: std::mem::transmute::<*mut c_void, ComputeMember>(merge),
            })
        }
    }

    /// Makes a client of `api` and gives it to TensorFlow for the devices of that type.
    ///
    /// # Errors
    /// Which of the two failed.
    ///
    /// # Safety
    /// `api` must be a PJRT function table that lives for the rest of the process.
    pub(crate) unsafe fn install_client(
        &self,
        api: *const Api,
        device_type: &CStr,
    ) -> Result<(), InstallError> {
        let options = EmptyMap {
            capacity: 0,
            size: 0,
            control: EMPTY_GROUP[16..].as_ptr(),
            slots: std::ptr::null(),
            rest: [0; 4],
        };
        let mut key_value_store = SharedPointer([0; 2]);
        let mut made = StatusOrClient { status: 0, client: std::ptr::null_mut() };
        // SAFETY: every argument has the layout that the function expects (above) and lives during the call.
        unsafe { (self.wrap_client)(&raw mut made, api, &raw const options, &raw mut key_value_store) };
        if made.status != STATUS_OK || made.client.is_null() {
            return Err(InstallError::NotMade);
        }
        let mut place = MaybeUninit::uninit();
        let device_type = ShortString::write(&mut place, device_type);
        let mut status: StatusWord = 0;
        // SAFETY: as above; the client is moved out of the pointer.
        unsafe { (self.set_client)(&raw mut status, device_type, &raw mut made.client) };
        if status == STATUS_OK { Ok(()) } else { Err(InstallError::NotTaken) }
    }

    /// Tells TensorFlow what compiled functions for the device are made of, also those that it makes itself where the
    /// user has turned that on.
    pub(crate) fn register_compilation_device(&self, device_type: &CStr, compilation_device: &CStr) {
        let mut place = MaybeUninit::uninit();
        let device_type = ShortString::write(&mut place, device_type);
        let mut place = MaybeUninit::<DeviceRegistration>::uninit();
        let registration = place.as_mut_ptr();
        // SAFETY: every field is written before the call, which copies the registration; the string is written where
        // it stays.
        unsafe {
            ShortString::write(
                &mut *(&raw mut (*registration).compilation_device).cast::<MaybeUninit<ShortString>>(),
                compilation_device,
            );
            (*registration).autoclustering = CLUSTER_IF_ENABLED;
            (*registration).cluster_resource_variables_unsafely = false;
            (*registration).cluster_stacks = false;
            (*registration).cluster_tensor_arrays = false;
            // XLA ignores the seeds of generators with state.
            (*registration).cluster_random_generators = false;
            (*registration).cluster_control_triggers = false;
            // XLA has no assertions; outside of functions that the user compiles they must hold.
            (*registration).elide_assertions = false;
            (*registration).cluster_variants = false;
            (*registration).cluster_slow_operators = true;
            (*registration).cluster_inaccurate_operators = true;
            (self.register_compilation_device)(device_type, registration);
        }
    }

    /// Gives the one input that is there on as the output, and its number as the second output.
    ///
    /// # Safety
    /// `context` must be TensorFlow's, live, and that of a node of the operator `Merge`.
    pub(crate) unsafe fn merge(&self, context: *mut KernelContext) {
        // A kernel of this class has no fields, and what it has of its base is read only where two inputs are there,
        // which the executor rules out; zeros stand for it.
        let mut this = [0_u64; 64];
        // SAFETY: the caller's promise; the object is not looked at.
        unsafe { (self.merge)(this.as_mut_ptr().cast(), context) };
    }

    /// Makes TensorFlow read its flags from the environment, unless it has done so.
    pub(crate) fn read_flags(&self) {
        // SAFETY: takes nothing, returns an address of its own, and may be called at any time.
        unsafe { (self.get_ops_flags)() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_points_to_its_own_bytes() {
        let mut place = MaybeUninit::uninit();
        let string = ShortString::write(&mut place, c"ACT");
        assert_eq!((string.data, string.size), (string.bytes.as_ptr(), 3));
        assert_eq!(&string.bytes[..4], b"ACT\0");
        assert_eq!(size_of::<ShortString>(), 32);
    }
}
