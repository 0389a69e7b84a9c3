//! Whether the TensorFlow in this process is one that the device was made for. Its plug-in interface is experimental and
//! the client is handed over by calls into C++, so a release is taken when it was tested, not when it looks right.

use std::sync::OnceLock;

use crate::cxx::Functions;
use crate::tensorflow::{self, TensorFlow};

/// The releases that the tests run on: major and minor version.
const TESTED: &[(u32, u32)] = &[(2, 20), (2, 21)];

/// What to do where there is another one.
const REMEDY: &str = "TensorFlow 2.20 and 2.21: pip install \"tensorflow>=2.20,<2.22\"";

/// What this library uses of a TensorFlow.
pub(crate) struct Supported {
    pub(crate) c: TensorFlow,
    pub(crate) cxx: Functions,
}

/// The TensorFlow in this process. Where it cannot be used, the reason is printed, once.
pub(crate) fn supported() -> Option<&'static Supported> {
    static SUPPORTED: OnceLock<Option<Supported>> = OnceLock::new();
    let supported = SUPPORTED.get_or_init(|| {
        let told = |reason| {
            let own = env!("CARGO_PKG_VERSION");
            eprintln!("act: no ACT device: {reason}. act-pjrt {own} works with {REMEDY}");
        };
        find().map_err(told).ok()
    });
    supported.as_ref()
}

fn find() -> Result<Supported, String> {
    let version = tensorflow::version().ok_or("there is no TensorFlow in this process")?;
    if !is_tested(&version) {
        return Err(format!("TensorFlow {version} is not a release that it was tested with"));
    }
    let missing = |name: &std::ffi::CStr| format!("TensorFlow {version} has no {}", name.to_string_lossy());
    let c = TensorFlow::find().map_err(missing)?;
    let cxx = Functions::find(c.library).map_err(missing)?;
    Ok(Supported { c, cxx })
}

fn is_tested(version: &str) -> bool {
    let mut numbers = version.split('.').map(|number| number.parse().ok());
    match (numbers.next().flatten(), numbers.next().flatten()) {
        (Some(major), Some(minor)) => TESTED.contains(&(major, minor)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tested_releases_are_taken() {
        assert!(["2.20.0", "2.21.0", "2.21.1-rc2", "2.20.0-dev20250801"].into_iter().all(is_tested));
        assert!(!["2.19.1", "2.22.0", "3.20.0", "2", "", "2.x.0", "1.15.5"].into_iter().any(is_tested));
    }

    #[test]
    fn a_process_without_tensorflow_is_not_supported() {
        assert_eq!(find().err().as_deref(), Some("there is no TensorFlow in this process"));
    }
}
