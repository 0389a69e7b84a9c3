//! Argument structs of the PJRT functions that an interposer hooks or calls. Fields marked "out" are
//! written by the function. It knows nothing of what is done with them.

use std::ffi::{c_char, c_void};

use crate::base::{
    ApiVersion, Buffer, Client, Device, DeviceDescription, Error, Event, Executable, ExecuteContext,
    ExtensionBase, LoadedExecutable, Memory, NamedValue, SerializedExecutable, TopologyDescription,
};
use crate::layout::{CStruct, Layout, c_struct};
use crate::slot::Slot;

/// The argument struct of one function of the table.
///
/// # Safety
/// The function in `SLOT` must take a pointer to this struct, and the struct must begin with its size.
pub unsafe trait Args: CStruct {
    /// The function that takes this struct.
    const SLOT: Slot;
}

/// Declares argument structs: each begins with its size and the caller's extension chain.
macro_rules! args_struct {
    ($($name:ident = $c_name:literal for $slot:ident { $($(#[$field_meta:meta])* $field:ident : $type:ty),* $(,)? })*) => {
        $(c_struct! {
            #[doc = concat!("`", $c_name, "`")]
            $name = $c_name for $slot {
                /// Size of this struct in bytes, as the caller knows it.
                struct_size: usize,
                /// Extensions of this call.
                extension_start: *mut ExtensionBase,
                $($(#[$field_meta])* $field: $type,)*
            }
        })*
    };
}

args_struct! {
    ErrorDestroyArgs = "PJRT_Error_Destroy_Args" for ErrorDestroy {
        /// May be null.
        error: *mut Error,
    }
    ErrorMessageArgs = "PJRT_Error_Message_Args" for ErrorMessage {
        /// The error asked about.
        error: *const Error,
        /// Out; lives as long as the error.
        message: *const c_char,
        /// Out.
        message_size: usize,
    }
    ErrorGetCodeArgs = "PJRT_Error_GetCode_Args" for ErrorGetCode {
        /// The error asked about.
        error: *const Error,
        /// Out; an [`ErrorCode`](crate::ErrorCode).
        code: i32,
    }
    PluginInitializeArgs = "PJRT_Plugin_Initialize_Args" for PluginInitialize {}
    PluginAttributesArgs = "PJRT_Plugin_Attributes_Args" for PluginAttributes {
        /// Out; lives as long as the process.
        attributes: *const NamedValue,
        /// Out.
        num_attributes: usize,
    }
    EventDestroyArgs = "PJRT_Event_Destroy_Args" for EventDestroy {
        /// The event to destroy.
        event: *mut Event,
    }
    EventAwaitArgs = "PJRT_Event_Await_Args" for EventAwait {
        /// The event to wait for.
        event: *mut Event,
    }
    EventOnReadyArgs = "PJRT_Event_OnReady_Args" for EventOnReady {
        /// The event to watch.
        event: *mut Event,
        /// Called once, with an error that it must destroy, or null.
        callback: Option<unsafe extern "C" fn(error: *mut Error, user_arg: *mut c_void)>,
        /// Handed to the callback.
        user_arg: *mut c_void,
    }
    ClientCreateArgs = "PJRT_Client_Create_Args" for ClientCreate {
        /// Options; belong to the caller.
        create_options: *const NamedValue,
        /// Number of options.
        num_options: usize,
        /// Key-value store callback of multi-process clients.
        kv_get_callback: *mut c_void,
        /// Handed to `kv_get_callback`.
        kv_get_user_arg: *mut c_void,
        /// Key-value store callback of multi-process clients.
        kv_put_callback: *mut c_void,
        /// Handed to `kv_put_callback`.
        kv_put_user_arg: *mut c_void,
        /// Out.
        client: *mut Client,
        /// Key-value store callback of multi-process clients.
        kv_try_get_callback: *mut c_void,
        /// Handed to `kv_try_get_callback`.
        kv_try_get_user_arg: *mut c_void,
    }
    ClientDestroyArgs = "PJRT_Client_Destroy_Args" for ClientDestroy {
        /// May be null.
        client: *mut Client,
    }
    ClientPlatformNameArgs = "PJRT_Client_PlatformName_Args" for ClientPlatformName {
        /// The client asked about.
        client: *mut Client,
        /// Out; lives as long as the client.
        platform_name: *const c_char,
        /// Out.
        platform_name_size: usize,
    }
    ClientPlatformVersionArgs = "PJRT_Client_PlatformVersion_Args" for ClientPlatformVersion {
        /// The client asked about.
        client: *mut Client,
        /// Out; lives as long as the client.
        platform_version: *const c_char,
        /// Out.
        platform_version_size: usize,
    }
    ClientDevicesArgs = "PJRT_Client_Devices_Args" for ClientDevices {
        /// The client asked about.
        client: *mut Client,
        /// Out; belongs to the client.
        devices: *const *mut Device,
        /// Out.
        num_devices: usize,
    }
    ClientAddressableDevicesArgs = "PJRT_Client_AddressableDevices_Args" for ClientAddressableDevices {
        /// The client asked about.
        client: *mut Client,
        /// Out; belongs to the client.
        addressable_devices: *const *mut Device,
        /// Out.
        num_addressable_devices: usize,
    }
    ClientTopologyDescriptionArgs = "PJRT_Client_TopologyDescription_Args" for ClientTopologyDescription {
        /// The client asked about.
        client: *mut Client,
        /// Out; belongs to the client.
        topology: *mut TopologyDescription,
    }
    ClientCompileArgs = "PJRT_Client_Compile_Args" for ClientCompile {
        /// The client to compile for.
        client: *mut Client,
        /// The program; read during the call.
        program: *const Program,
        /// A serialized CompileOptionsProto.
        compile_options: *const c_char,
        /// Its length in bytes.
        compile_options_size: usize,
        /// Out.
        executable: *mut LoadedExecutable,
    }
    ClientLoadArgs = "PJRT_Client_Load_Args" for ClientLoad {
        /// The client to load into.
        client: *mut Client,
        /// The executable to load.
        executable: *mut Executable,
        /// A serialized CompileOptionsProto.
        compile_options: *const c_char,
        /// Its length in bytes.
        compile_options_size: usize,
        /// Out.
        loaded_executable: *mut LoadedExecutable,
    }
    ClientBufferFromHostBufferArgs = "PJRT_Client_BufferFromHostBuffer_Args" for ClientBufferFromHostBuffer {
        /// The client that will own the buffer.
        client: *mut Client,
        /// The elements.
        data: *const c_void,
        /// One of the `buffer_type` constants.
        r#type: i32,
        /// The dimensions' lengths.
        dims: *const i64,
        /// The rank.
        num_dims: usize,
        /// Byte stride of each dimension, or null for dense row-major.
        byte_strides: *const i64,
        /// The rank, or 0.
        num_byte_strides: usize,
        /// One of the `host_buffer_semantics` constants.
        host_buffer_semantics: i32,
        /// Device to copy to.
        device: *mut Device,
        /// Memory to copy to, or null for the device's default.
        memory: *mut Memory,
        /// Layout on the device, or null for dense row-major.
        device_layout: *mut c_void,
        /// Out; ready when `data` may be freed. The caller destroys it.
        done_with_host_buffer: *mut Event,
        /// Out; the caller destroys it.
        buffer: *mut Buffer,
    }
    DeviceDescriptionIdArgs = "PJRT_DeviceDescription_Id_Args" for DeviceDescriptionId {
        /// The description asked about.
        device_description: *mut DeviceDescription,
        /// Out.
        id: i32,
    }
    DeviceDescriptionKindArgs = "PJRT_DeviceDescription_Kind_Args" for DeviceDescriptionKind {
        /// The description asked about.
        device_description: *mut DeviceDescription,
        /// Out; lives as long as the device.
        device_kind: *const c_char,
        /// Out.
        device_kind_size: usize,
    }
    DeviceDescriptionDebugStringArgs = "PJRT_DeviceDescription_DebugString_Args" for DeviceDescriptionDebugString {
        /// The description asked about.
        device_description: *mut DeviceDescription,
        /// Out; lives as long as the device.
        debug_string: *const c_char,
        /// Out.
        debug_string_size: usize,
    }
    DeviceDescriptionToStringArgs = "PJRT_DeviceDescription_ToString_Args" for DeviceDescriptionToString {
        /// The description asked about.
        device_description: *mut DeviceDescription,
        /// Out; lives as long as the device.
        to_string: *const c_char,
        /// Out.
        to_string_size: usize,
    }
    DeviceGetDescriptionArgs = "PJRT_Device_GetDescription_Args" for DeviceGetDescription {
        /// The device asked about.
        device: *mut Device,
        /// Out; belongs to the device.
        device_description: *mut DeviceDescription,
    }
    TopologyDescriptionPlatformVersionArgs = "PJRT_TopologyDescription_PlatformVersion_Args"
        for TopologyDescriptionPlatformVersion {
        /// The topology asked about.
        topology: *mut TopologyDescription,
        /// Out; lives as long as the topology.
        platform_version: *const c_char,
        /// Out.
        platform_version_size: usize,
    }
    TopologyDescriptionGetDeviceDescriptionsArgs = "PJRT_TopologyDescription_GetDeviceDescriptions_Args"
        for TopologyDescriptionGetDeviceDescriptions {
        /// The topology asked about.
        topology: *mut TopologyDescription,
        /// Out; belongs to the topology.
        descriptions: *const *mut DeviceDescription,
        /// Out.
        num_descriptions: usize,
    }
    CompileArgs = "PJRT_Compile_Args" for Compile {
        /// The topology to compile for.
        topology: *const TopologyDescription,
        /// The program; read during the call.
        program: *const Program,
        /// A serialized CompileOptionsProto.
        compile_options: *const c_char,
        /// Its length in bytes.
        compile_options_size: usize,
        /// A client that may help, or null.
        client: *mut Client,
        /// Out.
        executable: *mut Executable,
    }
    ExecutableDestroyArgs = "PJRT_Executable_Destroy_Args" for ExecutableDestroy {
        /// The executable to destroy.
        executable: *mut Executable,
    }
    ExecutableNumOutputsArgs = "PJRT_Executable_NumOutputs_Args" for ExecutableNumOutputs {
        /// The executable asked about.
        executable: *mut Executable,
        /// Out.
        num_outputs: usize,
    }
    ExecutableOptimizedProgramArgs = "PJRT_Executable_OptimizedProgram_Args" for ExecutableOptimizedProgram {
        /// The executable asked about.
        executable: *mut Executable,
        /// Out: with null `code` its size only, otherwise the bytes.
        program: *mut Program,
    }
    ExecutableGetCostAnalysisArgs = "PJRT_Executable_GetCostAnalysis_Args" for ExecutableGetCostAnalysis {
        /// The executable asked about.
        executable: *mut Executable,
        /// Out.
        num_properties: usize,
        /// Out; lives as long as the executable.
        properties: *const NamedValue,
    }
    ExecutableSerializeArgs = "PJRT_Executable_Serialize_Args" for ExecutableSerialize {
        /// The executable to write out.
        executable: *const Executable,
        /// Out; backed by `serialized_executable`.
        serialized_bytes: *const c_char,
        /// Out.
        serialized_bytes_size: usize,
        /// Out; what `serialized_executable_deleter` takes.
        serialized_executable: *mut SerializedExecutable,
        /// Out; the caller must call it once.
        serialized_executable_deleter: Option<unsafe extern "C" fn(executable: *mut SerializedExecutable)>,
    }
    ExecutableDeserializeAndLoadArgs = "PJRT_Executable_DeserializeAndLoad_Args"
        for ExecutableDeserializeAndLoad {
        /// The client to load into.
        client: *mut Client,
        /// What `PJRT_Executable_Serialize` wrote.
        serialized_executable: *const c_char,
        /// Its length in bytes.
        serialized_executable_size: usize,
        /// Out.
        loaded_executable: *mut LoadedExecutable,
        /// A serialized CompileOptionsProto, or null.
        overridden_serialized_compile_options: *const c_char,
        /// Its length in bytes.
        overridden_serialized_compile_options_size: usize,
    }
    ExecutableFingerprintArgs = "PJRT_Executable_Fingerprint_Args" for ExecutableFingerprint {
        /// The executable asked about.
        executable: *mut Executable,
        /// Out; lives as long as the executable.
        executable_fingerprint: *const c_char,
        /// Out.
        executable_fingerprint_size: usize,
    }
    LoadedExecutableFingerprintArgs = "PJRT_LoadedExecutable_Fingerprint_Args"
        for LoadedExecutableFingerprint {
        /// The executable asked about.
        executable: *mut LoadedExecutable,
        /// Out; lives as long as the executable.
        executable_fingerprint: *const c_char,
        /// Out.
        executable_fingerprint_size: usize,
    }
    LoadedExecutableDestroyArgs = "PJRT_LoadedExecutable_Destroy_Args" for LoadedExecutableDestroy {
        /// The executable to destroy.
        executable: *mut LoadedExecutable,
    }
    LoadedExecutableGetExecutableArgs = "PJRT_LoadedExecutable_GetExecutable_Args"
        for LoadedExecutableGetExecutable {
        /// The executable asked about.
        loaded_executable: *mut LoadedExecutable,
        /// Out; the caller destroys it.
        executable: *mut Executable,
    }
    LoadedExecutableExecuteArgs = "PJRT_LoadedExecutable_Execute_Args" for LoadedExecutableExecute {
        /// The executable to run.
        executable: *mut LoadedExecutable,
        /// Options; read during the call.
        options: *mut ExecuteOptions,
        /// Arguments, `[num_devices][num_args]`.
        argument_lists: *const *const *mut Buffer,
        /// Number of devices.
        num_devices: usize,
        /// Arguments per device.
        num_args: usize,
        /// Results, `[num_devices][num_outputs]`; the caller allocates the lists.
        output_lists: *const *mut *mut Buffer,
        /// Null, or `[num_devices]` events to be made, ready when a device has finished; the caller
        /// destroys them. Not filled in when the call fails.
        device_complete_events: *mut *mut Event,
        /// The device to run on, or null for those named at compile time.
        execute_device: *mut Device,
    }
    BufferDestroyArgs = "PJRT_Buffer_Destroy_Args" for BufferDestroy {
        /// The buffer to destroy.
        buffer: *mut Buffer,
    }
    BufferOnDeviceSizeInBytesArgs = "PJRT_Buffer_OnDeviceSizeInBytes_Args" for BufferOnDeviceSizeInBytes {
        /// The buffer asked about.
        buffer: *mut Buffer,
        /// Out.
        on_device_size_in_bytes: usize,
    }
    BufferDeviceArgs = "PJRT_Buffer_Device_Args" for BufferDevice {
        /// The buffer asked about.
        buffer: *mut Buffer,
        /// Out; belongs to the client.
        device: *mut Device,
    }
    BufferCopyToDeviceArgs = "PJRT_Buffer_CopyToDevice_Args" for BufferCopyToDevice {
        /// The buffer to copy.
        buffer: *mut Buffer,
        /// Device to copy to.
        dst_device: *mut Device,
        /// Out; the caller destroys it.
        dst_buffer: *mut Buffer,
    }
    BufferMemoryArgs = "PJRT_Buffer_Memory_Args" for BufferMemory {
        /// The buffer asked about.
        buffer: *mut Buffer,
        /// Out; belongs to the client.
        memory: *mut Memory,
    }
    BufferCopyToMemoryArgs = "PJRT_Buffer_CopyToMemory_Args" for BufferCopyToMemory {
        /// The buffer to copy.
        buffer: *mut Buffer,
        /// Memory to copy to.
        dst_memory: *mut Memory,
        /// Out; the caller destroys it.
        dst_buffer: *mut Buffer,
    }
    BufferToHostBufferArgs = "PJRT_Buffer_ToHostBuffer_Args" for BufferToHostBuffer {
        /// The buffer to read.
        src: *mut Buffer,
        /// Layout to copy to, or null for that of the buffer.
        host_layout: *mut c_void,
        /// Where to copy to; null to ask for the size.
        dst: *mut c_void,
        /// Size of `dst` in bytes; out when `dst` is null.
        dst_size: usize,
        /// Out; ready when the copy is done.
        event: *mut Event,
    }
}

c_struct! {
    /// `PJRT_Error_ForEachPayload_Args`
    ErrorForEachPayloadArgs = "PJRT_Error_ForEachPayload_Args" for ErrorForEachPayload {
        /// Size of this struct in bytes, as the caller knows it.
        struct_size: usize,
        /// Extensions of this call.
        extension_start: *mut ExtensionBase,
        /// The error asked about.
        error: *const Error,
        /// Called for each payload; an error made by an interposer has none.
        visitor: *mut c_void,
        /// Handed to the visitor.
        user_arg: *mut c_void,
    }
}

c_struct! {
    /// `PJRT_Program`: a program in one of the formats `hlo` (HloModuleProto), `hlo_with_config`, `mlir`.
    sized Program = "PJRT_Program" {
        /// Size of this struct in bytes.
        struct_size: usize,
        /// Extensions of this struct.
        extension_start: *mut ExtensionBase,
        /// The program's bytes.
        code: *mut c_char,
        /// Their number.
        code_size: usize,
        /// The format's name; not null-terminated.
        format: *const c_char,
        /// Length of the name in bytes.
        format_size: usize,
    }
}

c_struct! {
    /// `PJRT_ExecuteOptions`
    sized ExecuteOptions = "PJRT_ExecuteOptions" {
        /// Size of this struct in bytes, as the caller knows it.
        struct_size: usize,
        /// Extensions of this struct.
        extension_start: *mut ExtensionBase,
        /// Callbacks of send operations.
        send_callbacks: *mut c_void,
        /// Callbacks of receive operations.
        recv_callbacks: *mut c_void,
        /// Number of send callbacks per device.
        num_send_ops: usize,
        /// Number of receive callbacks per device.
        num_recv_ops: usize,
        /// Identifies a launch on several hosts, if not 0.
        launch_id: i32,
        /// Indices of arguments that must not be donated.
        non_donatable_input_indices: *const i64,
        /// Their number.
        num_non_donatable_input_indices: usize,
        /// User data for the handlers, or null.
        context: *mut ExecuteContext,
        /// Null-terminated source location of the caller, or null.
        call_location: *const c_char,
        /// Number of tasks.
        num_tasks: usize,
        /// Ids of the tasks.
        task_ids: *mut i32,
        /// Incarnation of each task.
        incarnation_ids: *mut i64,
    }
}

/// Values of [`ClientBufferFromHostBufferArgs::type`](ClientBufferFromHostBufferArgs).
pub mod buffer_type {
    /// IEEE single precision.
    pub const F32: i32 = 11;
}

/// Values of [`ClientBufferFromHostBufferArgs::host_buffer_semantics`].
pub mod host_buffer_semantics {
    /// The data are read before the call returns.
    pub const IMMUTABLE_ONLY_DURING_CALL: i32 = 0;
}

pub(crate) fn layouts() -> Vec<Layout> {
    vec![
        Layout::of::<ExtensionBase>(),
        Layout::of::<ApiVersion>(),
        Layout::of::<NamedValue>(),
        Layout::of::<Program>(),
        Layout::of::<ExecuteOptions>(),
        Layout::of::<ErrorDestroyArgs>(),
        Layout::of::<ErrorMessageArgs>(),
        Layout::of::<ErrorGetCodeArgs>(),
        Layout::of::<PluginInitializeArgs>(),
        Layout::of::<PluginAttributesArgs>(),
        Layout::of::<EventDestroyArgs>(),
        Layout::of::<EventAwaitArgs>(),
        Layout::of::<EventOnReadyArgs>(),
        Layout::of::<ClientCreateArgs>(),
        Layout::of::<ClientDestroyArgs>(),
        Layout::of::<ClientPlatformNameArgs>(),
        Layout::of::<ClientPlatformVersionArgs>(),
        Layout::of::<ClientDevicesArgs>(),
        Layout::of::<ClientAddressableDevicesArgs>(),
        Layout::of::<ClientTopologyDescriptionArgs>(),
        Layout::of::<ClientCompileArgs>(),
        Layout::of::<ClientBufferFromHostBufferArgs>(),
        Layout::of::<DeviceDescriptionIdArgs>(),
        Layout::of::<DeviceDescriptionKindArgs>(),
        Layout::of::<DeviceDescriptionDebugStringArgs>(),
        Layout::of::<DeviceDescriptionToStringArgs>(),
        Layout::of::<DeviceGetDescriptionArgs>(),
        Layout::of::<TopologyDescriptionPlatformVersionArgs>(),
        Layout::of::<TopologyDescriptionGetDeviceDescriptionsArgs>(),
        Layout::of::<CompileArgs>(),
        Layout::of::<ExecutableDestroyArgs>(),
        Layout::of::<ExecutableNumOutputsArgs>(),
        Layout::of::<ExecutableOptimizedProgramArgs>(),
        Layout::of::<ExecutableGetCostAnalysisArgs>(),
        Layout::of::<ExecutableSerializeArgs>(),
        Layout::of::<ExecutableDeserializeAndLoadArgs>(),
        Layout::of::<ExecutableFingerprintArgs>(),
        Layout::of::<LoadedExecutableFingerprintArgs>(),
        Layout::of::<LoadedExecutableDestroyArgs>(),
        Layout::of::<LoadedExecutableGetExecutableArgs>(),
        Layout::of::<LoadedExecutableExecuteArgs>(),
        Layout::of::<BufferDestroyArgs>(),
        Layout::of::<BufferOnDeviceSizeInBytesArgs>(),
        Layout::of::<BufferDeviceArgs>(),
        Layout::of::<BufferCopyToDeviceArgs>(),
        Layout::of::<BufferMemoryArgs>(),
        Layout::of::<BufferCopyToMemoryArgs>(),
        Layout::of::<BufferToHostBufferArgs>(),
    ]
}
