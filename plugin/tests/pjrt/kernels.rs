//! With a target: a made-up one whose kernel negates. What is tested is everything around it: the module's
//! edit, the handler, errors, lifetimes, bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use act_hlo::proto::{Computation, HloModule, Instruction};
use act_pjrt::compile::CompileContext;
use act_pjrt::kernel::{BufferRef, Kernel};
use act_pjrt::records::RunRecord;
use act_pjrt::target::{self, Offload, OffloadReport, Target};
use pjrt_abi::ErrorCode;
use pjrt_abi::caller::{Client, string_option};

use crate::library::{ADD_ONE, client};

const INPUT: [f32; 4] = [0.0, 1.0, -2.5, 1e9];
const NEGATED: [f32; 4] = [-0.0, -1.0, 2.5, -1e9];

/// What a kernel does besides negating.
#[derive(Clone)]
enum Manner {
    Plain,
    Fail,
    Panic,
    /// Waits for the executable's end, first thing in each run.
    Outlive(Arc<Outlive>),
}

/// What a test that destroys a running executable and its kernel tell each other.
#[derive(Default)]
struct Outlive {
    /// The executable is destroyed.
    destroyed: AtomicBool,
    /// Runs that saw that; others gave up waiting.
    saw_it: AtomicUsize,
}

impl Outlive {
    fn wait(&self) {
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(20) {
            if self.destroyed.load(Ordering::SeqCst) {
                self.saw_it.fetch_add(1, Ordering::SeqCst);
                return;
            }
            std::thread::yield_now();
        }
    }
}

/// A kernel that is counted while it lives.
struct Negate {
    manner: Manner,
    alive: Arc<AtomicUsize>,
}

impl Negate {
    fn new(manner: &Manner, alive: &Arc<AtomicUsize>) -> Box<Negate> {
        alive.fetch_add(1, Ordering::SeqCst);
        Box::new(Negate { manner: manner.clone(), alive: Arc::clone(alive) })
    }
}

impl Drop for Negate {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Kernel for Negate {
    fn run(&self, args: &[BufferRef<'_>], results: &[BufferRef<'_>]) -> Result<RunRecord, String> {
        match &self.manner {
            Manner::Plain => {}
            Manner::Fail => return Err("the device is on fire".to_owned()),
            Manner::Panic => panic!("the kernel has a fault"),
            Manner::Outlive(outlive) => outlive.wait(),
        }
        let ([arg], [result]) = (args, results) else { return Err("one of each".to_owned()) };
        assert_eq!((arg.dims, arg.size, result.size), (&[4_i64][..], 16, 16));
        for i in 0..4 {
            // SAFETY: both buffers have four f32.
            unsafe {
                let x = arg.data.cast::<f32>().add(i).read();
                result.data.cast::<f32>().add(i).write(-x);
            }
        }
        Ok(RunRecord {
            instructions: [("neg".to_owned(), 4)].into(),
            bytes_moved: 32,
            cycles: Some(8),
            ..RunRecord::default()
        })
    }

    fn serialize(&self) -> Vec<u8> {
        b"negate".to_vec()
    }

    fn origin(&self) -> &str {
        "jit(f)/add (program.py:12)"
    }

    fn device(&self) -> &str {
        "negator"
    }
}

/// Replaces every fusion of the entry computation that adds by a call of the kernel.
struct EveryAddition {
    key: &'static str,
    manner: Manner,
    alive: Arc<AtomicUsize>,
    offload_panics: bool,
}

impl Offload for EveryAddition {
    fn offload(&self, module: &mut HloModule, _: &CompileContext) -> OffloadReport {
        assert!(!self.offload_panics, "the offloader has a fault");
        let entry = module.entry_id();
        let mut report = OffloadReport::default();
        let adds = |c: &&Computation| c.instructions().any(|i| i.opcode() == "add");
        let adding: Vec<i64> = module.computations().filter(adds).map(Computation::id).collect();
        for instruction in module.computation_mut(entry).unwrap().instructions_mut() {
            let called = instruction.called_computation_ids().unwrap();
            if instruction.opcode() != "fusion" || !called.iter().all(|id| adding.contains(id)) {
                continue;
            }
            let shape = instruction.shape().unwrap();
            let attributes = format!("{{abi = 1 : i64, key = \"{}\"}}", self.key);
            *instruction = Instruction::custom_call(
                instruction.id(),
                instruction.name(),
                &shape,
                &instruction.operand_ids().unwrap(),
                std::slice::from_ref(&shape),
                "act_kernel",
                &attributes,
            );
            report.changed = true;
        }
        module.remove_unreachable_computations().unwrap();
        if report.changed {
            report.kernels.push((self.key.to_owned(), Negate::new(&self.manner, &self.alive)));
            report.regions.push(serde_json::json!({ "region": self.key }));
        }
        report
    }

    fn load_kernel(&self, _: &str, bytes: &[u8]) -> Result<Box<dyn Kernel>, String> {
        if bytes != b"negate" {
            return Err("not a kernel of this target".to_owned());
        }
        Ok(Negate::new(&self.manner, &self.alive))
    }
}

/// A client for a target of this name and manner, and the number of its kernels that are alive.
fn target_client(name: &'static str, manner: Manner) -> (Client, Arc<AtomicUsize>) {
    let alive = Arc::new(AtomicUsize::new(0));
    let offload = EveryAddition { key: name, manner, alive: Arc::clone(&alive), offload_panics: false };
    let target =
        Target { name: name.to_owned(), fingerprint: format!("print of {name}"), offload: Arc::new(offload) };
    target::register(target);
    (client(&[string_option("target", name)]).unwrap(), alive)
}

#[test]
fn a_region_runs_on_the_device() {
    let (client, _) = target_client("negator", Manner::Plain);
    let executable = client.compile("mlir", ADD_ONE.as_bytes()).unwrap();
    assert_eq!(executable.run(&[&INPUT]).unwrap(), NEGATED);
    let fingerprint = executable.executable().unwrap().fingerprint().unwrap();
    assert!(fingerprint.contains("target negator print of negator"), "{fingerprint}");
    assert!(act_pjrt::records::regions_json().contains("{\"region\":\"negator\"}"));
}

#[test]
fn a_failing_kernel_fails_the_execution() {
    for (name, manner, word) in [
        ("failing", Manner::Fail, "the device is on fire"),
        ("panicking", Manner::Panic, "the kernel has a fault"),
    ] {
        let (client, _) = target_client(name, manner);
        let error = client.compile("mlir", ADD_ONE.as_bytes()).unwrap().run(&[&INPUT]).unwrap_err();
        assert_eq!(error.code, ErrorCode::Internal as i32);
        let said = format!("jit(f)/add (program.py:12) has failed on negator: {word}");
        assert!(error.message.contains(&said), "{}", error.message);
        // The process goes on.
        let other = self::client(&[]).unwrap();
        let again = other.compile("mlir", ADD_ONE.as_bytes()).unwrap().run(&[&INPUT]).unwrap();
        assert_eq!(again, [1.0, 2.0, -1.5, 1e9]);
    }
}

#[test]
fn a_failing_offloader_leaves_the_program_to_the_host() {
    let offload =
        EveryAddition { key: "faulty", manner: Manner::Plain, alive: Arc::default(), offload_panics: true };
    let target = Target { name: "faulty".to_owned(), fingerprint: String::new(), offload: Arc::new(offload) };
    target::register(target);
    let client = client(&[string_option("target", "faulty")]).unwrap();
    let executable = client.compile("mlir", ADD_ONE.as_bytes()).unwrap();
    assert_eq!(executable.run(&[&INPUT]).unwrap(), [1.0, 2.0, -1.5, 1e9]);
}

#[test]
fn unknown_targets_and_keys_are_errors() {
    let (known, _) = target_client("known", Manner::Plain);
    let error = client(&[string_option("target", "unheard-of")]).unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidArgument as i32);
    assert!(error.message.contains("unheard-of") && error.message.contains("known"), "{}", error.message);

    let call = |attributes: &str| {
        let program = format!(
            "module @call {{ func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
               %y = stablehlo.custom_call @act_kernel(%x) {{api_version = 4 : i32,
                 backend_config = {{{attributes}}}}} : (tensor<4xf32>) -> tensor<4xf32>
               return %y : tensor<4xf32> }} }}"
        );
        known.compile("mlir", program.as_bytes()).unwrap().run(&[&INPUT]).unwrap_err()
    };
    let lost = call("abi = 1 : i64, key = \"lost\"");
    assert!(lost.code == ErrorCode::NotFound as i32 && lost.message.contains("lost"), "{lost}");
    let newer = call("abi = 2 : i64, key = \"lost\"");
    assert!(newer.code == ErrorCode::InvalidArgument as i32 && newer.message.contains("abi 2"), "{newer}");
    let bare = call("other = 2 : i32");
    assert!(bare.code == ErrorCode::InvalidArgument as i32 && bare.message.contains("abi"), "{bare}");
}

#[test]
fn kernels_live_as_long_as_an_executable_that_calls_them() {
    let (client, alive) = target_client("counted", Manner::Plain);
    let alive = || alive.load(Ordering::SeqCst);
    let first = client.compile("mlir", ADD_ONE.as_bytes()).unwrap();
    let second = client.compile("mlir", ADD_ONE.as_bytes()).unwrap();
    assert_eq!(alive(), 1, "equal keys share one kernel");
    drop(first);
    assert_eq!(second.run(&[&INPUT]).unwrap(), NEGATED);
    let executable = second.executable().unwrap();
    drop(second);
    assert_eq!(alive(), 1, "an executable is left");
    drop(executable);
    assert_eq!(alive(), 0);
}

#[test]
fn destroying_an_executable_does_not_disturb_its_execution() {
    let outlive = Arc::new(Outlive::default());
    let (client, alive) = target_client("outliving", Manner::Outlive(Arc::clone(&outlive)));
    // Two calls, the second of which looks its kernel up when the executable is gone. The product is there
    // because XLA runs cheap programs before it returns from the call that begins them.
    let program = "module @twice { func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
        %one = stablehlo.constant dense<1.0> : tensor<4xf32>
        %y = stablehlo.add %x, %one : tensor<4xf32>
        %z = stablehlo.custom_call @act_kernel(%y) {api_version = 4 : i32,
          backend_config = {abi = 1 : i64, key = \"outliving\"}} : (tensor<4xf32>) -> tensor<4xf32>
        %rows = stablehlo.broadcast_in_dim %z, dims = [0] : (tensor<4xf32>) -> tensor<4x512xf32>
        %columns = stablehlo.iota dim = 1 : tensor<512x512xf32>
        %product = stablehlo.dot %rows, %columns : (tensor<4x512xf32>, tensor<512x512xf32>) -> tensor<4x512xf32>
        %column = stablehlo.slice %product [0:4, 1:2] : (tensor<4x512xf32>) -> tensor<4x1xf32>
        %result = stablehlo.reshape %column : (tensor<4x1xf32>) -> tensor<4xf32>
        return %result : tensor<4xf32> } }";
    let executable = client.compile("mlir", program.as_bytes()).unwrap();
    let input = client.upload(&INPUT).unwrap();
    let running = executable.execute(&[&input]).unwrap();
    drop(executable);
    outlive.destroyed.store(true, Ordering::SeqCst);
    for (x, y) in INPUT.iter().zip(running.finish().unwrap()) {
        assert!((y - 512.0 * x).abs() <= 1e-4 * y.abs(), "512 * {x} = {y}");
    }
    assert_eq!(outlive.saw_it.load(Ordering::SeqCst), 2, "the execution was over before the executable was");
    // The event that lets the kernel go comes on a thread of XLA's.
    while alive.load(Ordering::SeqCst) > 0 {
        std::thread::yield_now();
    }
}

#[test]
fn kernels_go_to_bytes_and_back() {
    let (ours, alive) = target_client("stored", Manner::Plain);
    let bytes = {
        let executable = ours.compile("mlir", ADD_ONE.as_bytes()).unwrap();
        executable.executable().unwrap().serialize().unwrap()
    };
    assert_eq!(alive.load(Ordering::SeqCst), 0);
    let executable = ours.deserialize(&bytes).unwrap();
    assert_eq!(alive.load(Ordering::SeqCst), 1);
    assert_eq!(executable.run(&[&INPUT]).unwrap(), NEGATED);
    drop(executable);
    assert_eq!(alive.load(Ordering::SeqCst), 0);

    let (other, _) = target_client("not the same", Manner::Plain);
    let error = other.deserialize(&bytes).unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidArgument as i32);
    assert!(error.message.contains("target stored"), "{}", error.message);
}

#[test]
fn threads_compile_for_a_target_at_once() {
    let (client, alive) = target_client("busy", Manner::Plain);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..3 {
                    let executable = client.compile("mlir", ADD_ONE.as_bytes()).unwrap();
                    assert_eq!(executable.run(&[&INPUT]).unwrap(), NEGATED);
                }
            });
        }
    });
    while alive.load(Ordering::SeqCst) > 0 {
        std::thread::yield_now();
    }
}
