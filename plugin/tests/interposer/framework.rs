//! The least that a framework does with a PJRT library, for the tests: load, create a client, compile, run,
//! read back. Knows the C interface only.

use std::ffi::{c_char, c_void};
use std::path::PathBuf;

use pjrt_abi::args::{self, Args, ExecuteOptions, Program, buffer_type, host_buffer_semantics};
use pjrt_abi::layout::CStruct;
use pjrt_abi::{
    ApiRef, Buffer, Client, Device, DeviceDescription, Error, Event, Executable, LoadedExecutable,
    NamedValue, NamedValueUnion, named_value_type,
};

/// A CompileOptionsProto: executable_build_options { num_replicas: 1, num_partitions: 1 }.
pub(crate) const COMPILE_OPTIONS: &[u8] = &[0x1a, 4, 0x20, 1, 0x28, 1];

/// Adds 1 to each of four numbers.
pub(crate) const ADD_ONE: &str =
    "module @add_one { func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %one = stablehlo.constant dense<1.0> : tensor<4xf32>
    %sum = stablehlo.add %x, %one : tensor<4xf32>
    return %sum : tensor<4xf32> } }";

/// Our shared library, built with the test.
pub(crate) fn own_library() -> PathBuf {
    let test = std::env::current_exe().expect("a running program has a path");
    test.parent().expect("it lies in a directory").join("libact_pjrt.so")
}

/// XLA's library, of which ci/install puts a copy in place.
pub(crate) fn xla_library() -> PathBuf {
    let given = std::env::var_os("ACT_XLA_PLUGIN").filter(|path| !path.is_empty()).map(PathBuf::from);
    let path = given.unwrap_or_else(|| {
        PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../third_party/xla/pjrt_c_api_cpu_plugin.so"))
    });
    assert!(path.is_file(), "{} is missing: run ci/install, or set ACT_XLA_PLUGIN", path.display());
    path
}

/// An error as a framework reports it: code and message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failed {
    pub(crate) code: i32,
    pub(crate) message: String,
}

/// A loaded PJRT library.
#[derive(Clone, Copy)]
pub(crate) struct Library(pub(crate) ApiRef);

impl Library {
    pub(crate) fn load() -> Library {
        Library(pjrt_abi::load(&own_library()).expect("our library is a PJRT library"))
    }

    /// Calls a function, turning its error object into data.
    pub(crate) fn call<A: Args>(self, args: &mut A) -> Result<(), Failed> {
        // SAFETY: the tests fill their structs in as the C header demands.
        let error = unsafe { self.0.call(args) }.expect("the table has every function");
        self.take_error(error)
    }

    pub(crate) fn take_error(self, error: *mut Error) -> Result<(), Failed> {
        if error.is_null() {
            return Ok(());
        }
        let mut code = args::ErrorGetCodeArgs::new();
        code.error = error;
        let mut message = args::ErrorMessageArgs::new();
        message.error = error;
        let mut destroy = args::ErrorDestroyArgs::new();
        destroy.error = error;
        // SAFETY: the error is live until destroyed, at the end.
        unsafe {
            assert!(self.0.call(&mut code).expect("GetCode exists").is_null());
            assert!(self.0.call_void(&mut message));
            let text = string(message.message, message.message_size);
            assert!(self.0.call_void(&mut destroy));
            Err(Failed { code: code.code, message: text })
        }
    }

    /// A client of ours on XLA's library, with these further options.
    pub(crate) fn client(self, options: &[NamedValue]) -> Result<ClientRef, Failed> {
        let path = xla_library().into_os_string().into_string().expect("a path in UTF-8");
        let options: Vec<NamedValue> = options.iter().copied().chain([text("xla_plugin", &path)]).collect();
        self.client_with(&options)
    }

    pub(crate) fn client_with(self, options: &[NamedValue]) -> Result<ClientRef, Failed> {
        let mut args = args::ClientCreateArgs::new();
        args.create_options = options.as_ptr();
        args.num_options = options.len();
        self.call(&mut args)?;
        Ok(ClientRef { library: self, client: args.client })
    }
}

/// A string option.
pub(crate) fn text(name: &str, value: &str) -> NamedValue {
    NamedValue {
        struct_size: NamedValue::STRUCT_SIZE,
        name: name.as_ptr().cast(),
        name_size: name.len(),
        r#type: named_value_type::STRING,
        value: NamedValueUnion { string_value: value.as_ptr().cast() },
        value_size: value.len(),
        ..NamedValue::zeroed()
    }
}

/// An integer option.
pub(crate) fn integer(name: &str, value: i64) -> NamedValue {
    NamedValue {
        r#type: named_value_type::INT64,
        value: NamedValueUnion { int64_value: value },
        value_size: 1,
        ..text(name, "")
    }
}

/// # Safety
/// The library's answer.
pub(crate) unsafe fn string(data: *const c_char, size: usize) -> String {
    // SAFETY: the caller's promise.
    let bytes = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), size) };
    String::from_utf8(bytes.to_vec()).expect("messages are UTF-8")
}

/// A client; destroyed when dropped.
pub(crate) struct ClientRef {
    pub(crate) library: Library,
    pub(crate) client: *mut Client,
}

// SAFETY: PJRT clients may be used from any thread.
unsafe impl Send for ClientRef {}
// SAFETY: as above.
unsafe impl Sync for ClientRef {}

impl Drop for ClientRef {
    fn drop(&mut self) {
        let mut args = args::ClientDestroyArgs::new();
        args.client = self.client;
        self.library.call(&mut args).expect("a client can be destroyed");
    }
}

impl ClientRef {
    pub(crate) fn devices(&self) -> Vec<*mut Device> {
        let mut args = args::ClientDevicesArgs::new();
        args.client = self.client;
        self.library.call(&mut args).expect("devices are listed");
        // SAFETY: the library's answer.
        unsafe { std::slice::from_raw_parts(args.devices, args.num_devices) }.to_vec()
    }

    pub(crate) fn description(&self, device: *mut Device) -> *mut DeviceDescription {
        let mut args = args::DeviceGetDescriptionArgs::new();
        args.device = device;
        self.library.call(&mut args).expect("a device has a description");
        args.device_description
    }

    pub(crate) fn platform_version(&self) -> String {
        let mut args = args::ClientPlatformVersionArgs::new();
        args.client = self.client;
        self.library.call(&mut args).expect("a client has a version");
        // SAFETY: the library's answer.
        unsafe { string(args.platform_version, args.platform_version_size) }
    }

    pub(crate) fn compile(&self, mlir: &str) -> Result<ExecutableRef<'_>, Failed> {
        self.compile_format("mlir", mlir.as_bytes())
    }

    pub(crate) fn compile_format(&self, format: &str, code: &[u8]) -> Result<ExecutableRef<'_>, Failed> {
        let mut program = Program::new();
        program.code = code.as_ptr().cast_mut().cast();
        program.code_size = code.len();
        program.format = format.as_ptr().cast();
        program.format_size = format.len();
        let mut args = args::ClientCompileArgs::new();
        args.client = self.client;
        args.program = &raw const program;
        args.compile_options = COMPILE_OPTIONS.as_ptr().cast();
        args.compile_options_size = COMPILE_OPTIONS.len();
        self.library.call(&mut args)?;
        Ok(ExecutableRef { client: self, loaded: args.executable })
    }

    pub(crate) fn deserialize(&self, bytes: &[u8]) -> Result<ExecutableRef<'_>, Failed> {
        let mut args = args::ExecutableDeserializeAndLoadArgs::new();
        args.client = self.client;
        args.serialized_executable = bytes.as_ptr().cast();
        args.serialized_executable_size = bytes.len();
        self.library.call(&mut args)?;
        Ok(ExecutableRef { client: self, loaded: args.loaded_executable })
    }

    pub(crate) fn upload(&self, data: &[f32], dims: &[i64]) -> *mut Buffer {
        let mut args = args::ClientBufferFromHostBufferArgs::new();
        args.client = self.client;
        args.data = data.as_ptr().cast();
        args.r#type = buffer_type::F32;
        args.dims = dims.as_ptr();
        args.num_dims = dims.len();
        args.host_buffer_semantics = host_buffer_semantics::IMMUTABLE_ONLY_DURING_CALL;
        args.device = self.devices()[0];
        self.library.call(&mut args).expect("a buffer can be made");
        self.wait(args.done_with_host_buffer);
        args.buffer
    }

    pub(crate) fn download(&self, buffer: *mut Buffer) -> Vec<f32> {
        let mut args = args::BufferToHostBufferArgs::new();
        args.src = buffer;
        self.library.call(&mut args).expect("a buffer has a size");
        let mut data = vec![0_f32; args.dst_size / size_of::<f32>()];
        args.dst = data.as_mut_ptr().cast::<c_void>();
        self.library.call(&mut args).expect("a buffer can be read");
        self.wait(args.event);
        let mut destroy = args::BufferDestroyArgs::new();
        destroy.buffer = buffer;
        self.library.call(&mut destroy).expect("a buffer can be destroyed");
        data
    }

    pub(crate) fn wait(&self, event: *mut Event) {
        self.try_wait(event).expect("what was waited for succeeded");
    }

    pub(crate) fn try_wait(&self, event: *mut Event) -> Result<(), Failed> {
        let mut wait = args::EventAwaitArgs::new();
        wait.event = event;
        let outcome = self.library.call(&mut wait);
        let mut destroy = args::EventDestroyArgs::new();
        destroy.event = event;
        self.library.call(&mut destroy).expect("an event can be destroyed");
        outcome
    }
}

/// A loaded executable; destroyed when dropped.
pub(crate) struct ExecutableRef<'a> {
    pub(crate) client: &'a ClientRef,
    pub(crate) loaded: *mut LoadedExecutable,
}

impl Drop for ExecutableRef<'_> {
    fn drop(&mut self) {
        let mut args = args::LoadedExecutableDestroyArgs::new();
        args.executable = self.loaded;
        self.client.library.call(&mut args).expect("an executable can be destroyed");
    }
}

impl ExecutableRef<'_> {
    /// Runs on vectors and returns the one result.
    pub(crate) fn run(&self, inputs: &[&[f32]]) -> Result<Vec<f32>, Failed> {
        self.run_with(inputs, ExecuteOptions::STRUCT_SIZE)
    }

    /// As [`Self::run`], as a framework does whose options have only `options_size` bytes.
    pub(crate) fn run_with(&self, inputs: &[&[f32]], options_size: usize) -> Result<Vec<f32>, Failed> {
        let buffers: Vec<*mut Buffer> =
            inputs.iter().map(|input| self.client.upload(input, &[input.len() as i64])).collect();
        let argument_lists = [buffers.as_ptr()];
        let mut output: *mut Buffer = std::ptr::null_mut();
        let output_lists = [&raw mut output];
        let mut event: *mut Event = std::ptr::null_mut();
        let mut options = ExecuteOptions::new();
        options.struct_size = options_size;
        let mut args = args::LoadedExecutableExecuteArgs::new();
        args.executable = self.loaded;
        args.options = &raw mut options;
        args.argument_lists = argument_lists.as_ptr();
        args.num_devices = 1;
        args.num_args = buffers.len();
        args.output_lists = output_lists.as_ptr();
        args.device_complete_events = &raw mut event;
        let outcome = self.client.library.call(&mut args);
        for buffer in buffers {
            let mut destroy = args::BufferDestroyArgs::new();
            destroy.buffer = buffer;
            self.client.library.call(&mut destroy).expect("a buffer can be destroyed");
        }
        outcome?;
        self.client.try_wait(event)?;
        Ok(self.client.download(output))
    }

    /// The executable behind it; the caller destroys it.
    pub(crate) fn executable(&self) -> *mut Executable {
        let mut args = args::LoadedExecutableGetExecutableArgs::new();
        args.loaded_executable = self.loaded;
        self.client.library.call(&mut args).expect("a loaded executable has an executable");
        args.executable
    }

    pub(crate) fn destroy_executable(&self, executable: *mut Executable) {
        let mut args = args::ExecutableDestroyArgs::new();
        args.executable = executable;
        self.client.library.call(&mut args).expect("an executable can be destroyed");
    }

    pub(crate) fn fingerprint(&self) -> Result<String, Failed> {
        let executable = self.executable();
        let mut args = args::ExecutableFingerprintArgs::new();
        args.executable = executable;
        let outcome = self.client.library.call(&mut args);
        // SAFETY: the library's answer, valid until the destroy below.
        let text = outcome
            .map(|()| unsafe { string(args.executable_fingerprint, args.executable_fingerprint_size) });
        self.destroy_executable(executable);
        text
    }

    pub(crate) fn serialize(&self) -> Vec<u8> {
        let executable = self.executable();
        let mut args = args::ExecutableSerializeArgs::new();
        args.executable = executable;
        self.client.library.call(&mut args).expect("an executable can be serialized");
        // SAFETY: the library's answer, valid until the deleter is called.
        let bytes = unsafe {
            std::slice::from_raw_parts(args.serialized_bytes.cast::<u8>(), args.serialized_bytes_size)
        }
        .to_vec();
        let deleter = args.serialized_executable_deleter.expect("the bytes come with a deleter");
        // SAFETY: called once.
        unsafe { deleter(args.serialized_executable) };
        self.destroy_executable(executable);
        bytes
    }
}
