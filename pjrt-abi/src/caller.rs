//! The side of a framework, as far as trying out a library takes: create a client, compile, run on vectors
//! of f32, read back. Everything made is destroyed when dropped. It knows nothing of which library it calls.

use std::ffi::c_char;
use std::ptr::NonNull;

use thiserror::Error as ThisError;

use crate::api::ApiRef;
use crate::args::{
    Args, BufferDestroyArgs, BufferToHostBufferArgs, ClientBufferFromHostBufferArgs, ClientCompileArgs,
    ClientCreateArgs, ClientDestroyArgs, ClientDevicesArgs, ErrorDestroyArgs, ErrorGetCodeArgs,
    ErrorMessageArgs, EventAwaitArgs, EventDestroyArgs, ExecutableDeserializeAndLoadArgs,
    ExecutableDestroyArgs, ExecutableFingerprintArgs, ExecutableSerializeArgs, ExecuteOptions,
    LoadedExecutableDestroyArgs, LoadedExecutableExecuteArgs, LoadedExecutableGetExecutableArgs, Program,
    buffer_type, host_buffer_semantics,
};
use crate::base::{self, Device, Error, ErrorCode, Event, NamedValue};
use crate::layout::CStruct;

/// A CompileOptionsProto: `executable_build_options { num_replicas: 1, num_partitions: 1 }`.
const COMPILE_OPTIONS: &[u8] = &[0x1a, 4, 0x20, 1, 0x28, 1];

/// A library's error.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[error("{message} (code {code})")]
pub struct Failed {
    /// An [`ErrorCode`].
    pub code: i32,
    /// What went wrong.
    pub message: String,
}

/// Calls the function that takes `A`.
///
/// # Errors
/// The library's error, or that it has no such function.
///
/// # Safety
/// `args` must be filled in as the function's contract demands.
pub unsafe fn call<A: Args>(api: ApiRef, args: &mut A) -> Result<(), Failed> {
    // SAFETY: the caller's promise.
    match unsafe { api.call(args) } {
        // SAFETY: the library has just made it.
        Some(error) => unsafe { take_error(api, error) },
        None => Err(Failed {
            code: ErrorCode::Unimplemented as i32,
            message: format!("the library has no {}", A::SLOT.name()),
        }),
    }
}

/// An error object as data; it is destroyed. Null is success.
///
/// # Errors
/// The error, if it is one.
///
/// # Safety
/// `error` must be null or a live error of that library, and not be used any more.
pub unsafe fn take_error(api: ApiRef, error: *mut Error) -> Result<(), Failed> {
    let Some(error) = NonNull::new(error) else { return Ok(()) };
    let mut code = ErrorGetCodeArgs::new();
    code.error = error.as_ptr();
    let mut message = ErrorMessageArgs::new();
    message.error = error.as_ptr();
    let mut destroy = ErrorDestroyArgs::new();
    destroy.error = error.as_ptr();
    // SAFETY: the error is live until destroyed, last.
    unsafe {
        api.call(&mut code);
        api.call_void(&mut message);
        let text = String::from_utf8_lossy(bytes(message.message, message.message_size)).into_owned();
        api.call_void(&mut destroy);
        Err(Failed { code: code.code, message: text })
    }
}

/// Bytes that a library handed out.
///
/// # Safety
/// `data` must be null or point to `size` bytes that live as long as the result is used.
pub unsafe fn bytes<'a>(data: *const c_char, size: usize) -> &'a [u8] {
    if data.is_null() {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(data.cast::<u8>(), size) }
}

/// A client of a library's.
#[derive(Debug)]
pub struct Client {
    api: ApiRef,
    client: *mut base::Client,
    /// Whether it is destroyed with this.
    owned: bool,
}

// SAFETY: PJRT clients may be used from any thread.
unsafe impl Send for Client {}
// SAFETY: as above.
unsafe impl Sync for Client {}

impl Client {
    /// A new client.
    ///
    /// # Errors
    /// The library's.
    ///
    /// # Safety
    /// The options must be as the C header demands.
    pub unsafe fn create(api: ApiRef, options: &[NamedValue]) -> Result<Client, Failed> {
        let mut args = ClientCreateArgs::new();
        (args.create_options, args.num_options) = (options.as_ptr(), options.len());
        // SAFETY: the struct is filled in.
        unsafe { call(api, &mut args) }?;
        Ok(Client { api, client: args.client, owned: true })
    }

    /// Someone else's client, which is not destroyed.
    ///
    /// # Safety
    /// `client` must be a client of that library and outlive this.
    pub unsafe fn borrow(api: ApiRef, client: *mut base::Client) -> Client {
        Client { api, client, owned: false }
    }

    /// The library.
    pub fn api(&self) -> ApiRef {
        self.api
    }

    /// The client itself.
    pub fn as_ptr(&self) -> *mut base::Client {
        self.client
    }

    /// Its devices.
    ///
    /// # Errors
    /// The library's.
    pub fn devices(&self) -> Result<Vec<*mut Device>, Failed> {
        let mut args = ClientDevicesArgs::new();
        args.client = self.client;
        // SAFETY: the struct is filled in.
        unsafe { call(self.api, &mut args) }?;
        if args.devices.is_null() {
            return Ok(Vec::new());
        }
        // SAFETY: the library says where the devices are and how many.
        Ok(unsafe { std::slice::from_raw_parts(args.devices, args.num_devices) }.to_vec())
    }

    /// Compiles a program in format `mlir`, `hlo` or `hlo_with_config`.
    ///
    /// # Errors
    /// The library's.
    pub fn compile(&self, format: &str, code: &[u8]) -> Result<LoadedExecutable<'_>, Failed> {
        let mut program = Program::new();
        (program.code, program.code_size) = (code.as_ptr().cast_mut().cast(), code.len());
        (program.format, program.format_size) = (format.as_ptr().cast(), format.len());
        let mut args = ClientCompileArgs::new();
        args.client = self.client;
        args.program = &raw const program;
        args.compile_options = COMPILE_OPTIONS.as_ptr().cast();
        args.compile_options_size = COMPILE_OPTIONS.len();
        // SAFETY: the struct is filled in.
        unsafe { call(self.api, &mut args) }?;
        Ok(LoadedExecutable { client: self, loaded: args.executable })
    }

    /// Loads what [`LoadedExecutable::serialize`] wrote.
    ///
    /// # Errors
    /// The library's.
    pub fn deserialize(&self, serialized: &[u8]) -> Result<LoadedExecutable<'_>, Failed> {
        let mut args = ExecutableDeserializeAndLoadArgs::new();
        args.client = self.client;
        args.serialized_executable = serialized.as_ptr().cast();
        args.serialized_executable_size = serialized.len();
        // SAFETY: the struct is filled in.
        unsafe { call(self.api, &mut args) }?;
        Ok(LoadedExecutable { client: self, loaded: args.loaded_executable })
    }

    /// A vector on the first device.
    ///
    /// # Errors
    /// The library's, or that there is no device.
    pub fn upload(&self, data: &[f32]) -> Result<Buffer<'_>, Failed> {
        let no_device = || Failed { code: ErrorCode::NotFound as i32, message: "no device".to_owned() };
        let dims = [data.len() as i64];
        let mut args = ClientBufferFromHostBufferArgs::new();
        args.client = self.client;
        args.data = data.as_ptr().cast();
        args.r#type = buffer_type::F32;
        (args.dims, args.num_dims) = (dims.as_ptr(), dims.len());
        args.host_buffer_semantics = host_buffer_semantics::IMMUTABLE_ONLY_DURING_CALL;
        args.device = *self.devices()?.first().ok_or_else(no_device)?;
        // SAFETY: the struct is filled in.
        unsafe { call(self.api, &mut args) }?;
        let buffer = Buffer { client: self, buffer: args.buffer };
        self.wait(args.done_with_host_buffer)?;
        Ok(buffer)
    }

    /// A vector that the library has made, which is destroyed when dropped.
    ///
    /// # Safety
    /// `buffer` must be a live buffer of this client's that nobody else destroys.
    pub unsafe fn adopt(&self, buffer: *mut base::Buffer) -> Buffer<'_> {
        Buffer { client: self, buffer }
    }

    /// Waits for an event and destroys it.
    fn wait(&self, event: *mut Event) -> Result<(), Failed> {
        let mut wait = EventAwaitArgs::new();
        wait.event = event;
        let mut destroy = EventDestroyArgs::new();
        destroy.event = event;
        // SAFETY: the event was just made by the library, and is destroyed once.
        unsafe {
            let outcome = call(self.api, &mut wait);
            call(self.api, &mut destroy)?;
            outcome
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if self.owned {
            let mut args = ClientDestroyArgs::new();
            args.client = self.client;
            // SAFETY: ours, and not used any more. Nothing can be done about a failure.
            let _ = unsafe { call(self.api, &mut args) };
        }
    }
}

/// A vector of f32 on a device.
#[derive(Debug)]
pub struct Buffer<'a> {
    client: &'a Client,
    buffer: *mut base::Buffer,
}

impl Buffer<'_> {
    /// The buffer itself.
    pub fn as_ptr(&self) -> *mut base::Buffer {
        self.buffer
    }

    /// The elements.
    ///
    /// # Errors
    /// The library's.
    pub fn download(&self) -> Result<Vec<f32>, Failed> {
        let mut args = BufferToHostBufferArgs::new();
        args.src = self.buffer;
        // SAFETY: the struct is filled in, here to ask for the size.
        unsafe { call(self.client.api, &mut args) }?;
        let mut data = vec![0.0; args.dst_size / size_of::<f32>()];
        args.dst = data.as_mut_ptr().cast();
        // SAFETY: the struct is filled in.
        unsafe { call(self.client.api, &mut args) }?;
        self.client.wait(args.event)?;
        Ok(data)
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        let mut args = BufferDestroyArgs::new();
        args.buffer = self.buffer;
        // SAFETY: ours, and not used any more. Nothing can be done about a failure.
        let _ = unsafe { call(self.client.api, &mut args) };
    }
}

/// A program that can be run.
#[derive(Debug)]
pub struct LoadedExecutable<'a> {
    client: &'a Client,
    loaded: *mut base::LoadedExecutable,
}

// SAFETY: PJRT executables may be used from any thread.
unsafe impl Send for LoadedExecutable<'_> {}
// SAFETY: as above.
unsafe impl Sync for LoadedExecutable<'_> {}

impl<'a> LoadedExecutable<'a> {
    /// Runs on vectors, waits for the end, and returns the one result.
    ///
    /// # Errors
    /// The library's.
    pub fn run(&self, inputs: &[&[f32]]) -> Result<Vec<f32>, Failed> {
        let mut buffers = Vec::new();
        for input in inputs {
            buffers.push(self.client.upload(input)?);
        }
        let buffers: Vec<&Buffer<'_>> = buffers.iter().collect();
        self.execute(&buffers)?.finish()
    }

    /// Begins to run.
    ///
    /// # Errors
    /// The library's.
    pub fn execute(&self, inputs: &[&Buffer<'_>]) -> Result<Running<'a>, Failed> {
        self.execute_with(inputs, ExecuteOptions::new())
    }

    /// Begins to run with other options, of which as many bytes count as their size says.
    ///
    /// # Errors
    /// The library's.
    pub fn execute_with(
        &self,
        inputs: &[&Buffer<'_>],
        mut options: ExecuteOptions,
    ) -> Result<Running<'a>, Failed> {
        let arguments: Vec<*mut base::Buffer> = inputs.iter().map(|input| input.buffer).collect();
        let argument_lists = [arguments.as_ptr()];
        let mut output: *mut base::Buffer = std::ptr::null_mut();
        let output_lists = [&raw mut output];
        let mut event: *mut Event = std::ptr::null_mut();
        let mut args = LoadedExecutableExecuteArgs::new();
        args.executable = self.loaded;
        args.options = &raw mut options;
        args.argument_lists = argument_lists.as_ptr();
        args.num_devices = 1;
        args.num_args = arguments.len();
        args.output_lists = output_lists.as_ptr();
        args.device_complete_events = &raw mut event;
        // SAFETY: the struct is filled in.
        unsafe { call(self.client.api, &mut args) }?;
        Ok(Running { output: Buffer { client: self.client, buffer: output }, event })
    }

    /// The executable behind it.
    ///
    /// # Errors
    /// The library's.
    pub fn executable(&self) -> Result<Executable<'a>, Failed> {
        let mut args = LoadedExecutableGetExecutableArgs::new();
        args.loaded_executable = self.loaded;
        // SAFETY: the struct is filled in.
        unsafe { call(self.client.api, &mut args) }?;
        Ok(Executable { client: self.client, executable: args.executable })
    }
}

impl Drop for LoadedExecutable<'_> {
    fn drop(&mut self) {
        let mut args = LoadedExecutableDestroyArgs::new();
        args.executable = self.loaded;
        // SAFETY: ours, and not used any more. Nothing can be done about a failure.
        let _ = unsafe { call(self.client.api, &mut args) };
    }
}

/// An execution under way.
#[derive(Debug)]
pub struct Running<'a> {
    output: Buffer<'a>,
    event: *mut Event,
}

impl Running<'_> {
    /// Waits for the end and returns the one result.
    ///
    /// # Errors
    /// The execution's.
    pub fn finish(self) -> Result<Vec<f32>, Failed> {
        self.output.client.wait(self.event)?;
        self.output.download()
    }
}

/// A compiled program, without a claim on a device.
#[derive(Debug)]
pub struct Executable<'a> {
    client: &'a Client,
    executable: *mut base::Executable,
}

impl Executable<'_> {
    /// The executable itself.
    pub fn as_ptr(&self) -> *mut base::Executable {
        self.executable
    }

    /// What identifies the program and how it was compiled.
    ///
    /// # Errors
    /// The library's.
    pub fn fingerprint(&self) -> Result<String, Failed> {
        let mut args = ExecutableFingerprintArgs::new();
        args.executable = self.executable;
        // SAFETY: the struct is filled in, and the library's answer lives as long as the executable.
        unsafe {
            call(self.client.api, &mut args)?;
            let text = bytes(args.executable_fingerprint, args.executable_fingerprint_size);
            Ok(String::from_utf8_lossy(text).into_owned())
        }
    }

    /// The program as bytes, for [`Client::deserialize`].
    ///
    /// # Errors
    /// The library's.
    pub fn serialize(&self) -> Result<Vec<u8>, Failed> {
        let mut args = ExecutableSerializeArgs::new();
        args.executable = self.executable;
        // SAFETY: the struct is filled in; the library's bytes live until its deleter is called, once.
        unsafe {
            call(self.client.api, &mut args)?;
            let serialized = bytes(args.serialized_bytes, args.serialized_bytes_size).to_vec();
            if let Some(deleter) = args.serialized_executable_deleter {
                deleter(args.serialized_executable);
            }
            Ok(serialized)
        }
    }
}

impl Drop for Executable<'_> {
    fn drop(&mut self) {
        let mut args = ExecutableDestroyArgs::new();
        args.executable = self.executable;
        // SAFETY: ours, and not used any more. Nothing can be done about a failure.
        let _ = unsafe { call(self.client.api, &mut args) };
    }
}

/// A named value with a string.
pub fn string_option(name: &'static str, value: &str) -> NamedValue {
    NamedValue {
        struct_size: NamedValue::STRUCT_SIZE,
        name: name.as_ptr().cast(),
        name_size: name.len(),
        r#type: base::named_value_type::STRING,
        value: base::NamedValueUnion { string_value: value.as_ptr().cast() },
        value_size: value.len(),
        ..NamedValue::zeroed()
    }
}

/// A named value with an integer.
pub fn integer_option(name: &'static str, value: i64) -> NamedValue {
    NamedValue {
        r#type: base::named_value_type::INT64,
        value: base::NamedValueUnion { int64_value: value },
        value_size: 1,
        ..string_option(name, "")
    }
}
