//! What a call of a kernel costs beyond the kernel: the same program with and without one, in one process.
//! Compare the two lines; neither means much alone.

use std::hint::black_box;
use std::path::PathBuf;

use act_pjrt::kernel::{self, BufferRef, Kernel};
use act_pjrt::records::RunRecord;
use criterion::{Criterion, criterion_group, criterion_main};
use pjrt_abi::ApiRef;
use pjrt_abi::caller::{Client, string_option};

/// Calls in one program, so that their cost stands out from that of an execution.
const CALLS: usize = 64;

struct Nothing;

impl Kernel for Nothing {
    fn run(&self, _: &[BufferRef<'_>], _: &[BufferRef<'_>]) -> Result<RunRecord, String> {
        Ok(RunRecord::default())
    }

    fn serialize(&self) -> Vec<u8> {
        Vec::new()
    }
}

/// A chain of calls of the kernel that does nothing.
fn chain(calls: usize) -> String {
    let mut body = String::new();
    for i in 0..calls {
        body += &format!(
            "%x{} = stablehlo.custom_call @act_kernel(%x{i}) {{api_version = 4 : i32,
               backend_config = {{abi = 1 : i64, key = \"nothing\"}}}} : (tensor<4xf32>) -> tensor<4xf32>\n",
            i + 1
        );
    }
    format!(
        "module @chain {{ func.func public @main(%arg: tensor<4xf32>) -> tensor<4xf32> {{
           %one = stablehlo.constant dense<1.0> : tensor<4xf32>
           %x0 = stablehlo.add %arg, %one : tensor<4xf32>
           {body} return %x{calls} : tensor<4xf32> }} }}"
    )
}

fn custom_call(criterion: &mut Criterion) {
    let xla = std::env::var_os("ACT_XLA_PLUGIN").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../third_party/xla/pjrt_c_api_cpu_plugin.so")),
        PathBuf::from,
    );
    let xla = xla.into_os_string().into_string().expect("a path in UTF-8");
    // SAFETY: our table lives for the rest of the process.
    let api = unsafe { ApiRef::new(act_pjrt::GetPjrtApi()) };
    // SAFETY: the option is well-formed.
    let client = unsafe { Client::create(api, &[string_option("xla_plugin", &xla)]) }.expect("a client");
    let _kernel = kernel::register("nothing", Box::new(Nothing));
    let input = client.upload(&[1.0; 4]).expect("a buffer");
    for calls in [0, CALLS] {
        let executable = client.compile("mlir", chain(calls).as_bytes()).expect("a program");
        criterion.bench_function(&format!("execution with {calls} calls"), |bencher| {
            bencher.iter(|| {
                black_box(executable.execute(&[&input]).and_then(|run| run.finish())).expect("a result")
            });
        });
    }
}

criterion_group!(benches, custom_call);
criterion_main!(benches);
