//! Trying XLA's `atan` on 64 numbers: enough for the vectorised code that is wrong in some builds.

use pjrt_abi::Client;
use pjrt_abi::caller::{self, Failed};

use crate::inner;

const COUNT: usize = 64;
/// Float rounding is below this; the fault is as large as the input.
const TOLERANCE: f64 = 1e-5;

const PROGRAM: &str = "module @atan { func.func public @main(%x: tensor<64xf32>) -> tensor<64xf32> {
    %one = stablehlo.constant dense<1.0> : tensor<64xf32>
    %angle = stablehlo.atan2 %x, %one : tensor<64xf32>
    return %angle : tensor<64xf32> } }";

/// Whether XLA computes `atan` right. A try that fails counts as wrong: the repair is exact in any case.
pub(super) fn atan_is_right(client: *mut Client) -> bool {
    let Some(inner) = inner::loaded() else { return false };
    // SAFETY: the client is the inner library's, and lives while the framework calls one of its functions.
    let client = unsafe { caller::Client::borrow(inner.api, client) };
    let inputs: Vec<f32> = (0..COUNT).map(|i| (i as f32 - 31.5) * 1.5).collect();
    match run(&client, &inputs) {
        Ok(outputs) => inputs
            .iter()
            .zip(&outputs)
            .all(|(&input, &output)| (f64::from(output) - f64::from(input).atan()).abs() < TOLERANCE),
        Err(error) => {
            tracing::warn!("XLA's atan could not be tried: {error}");
            false
        }
    }
}

/// Straight through the inner library, past our hooks and so without our repair.
fn run(client: &caller::Client, inputs: &[f32]) -> Result<Vec<f32>, Failed> {
    client.compile("mlir", PROGRAM.as_bytes())?.run(&[inputs])
}
