//! Options of a compilation that frameworks built with another XLA send, set to what a JAX of the carried library's age
//! sends, unless the user has set them.
//!
//! Which operators XLA's CPU backend may hand to its library of kernels is a list. With an older one reductions are split
//! in parts and narrow products widened before anybody can offload them, and the host's code is slower. And TensorFlow
//! allows minima and maxima that lose a NaN, which its own operators never do.
//!
//! Knows protobuf and four field numbers, no framework.

use act_hlo::proto::{Message, ProtoError};

/// `CompileOptionsProto.executable_build_options`
const BUILD_OPTIONS: u32 = 3;
/// `ExecutableBuildOptionsProto.debug_options`
const DEBUG_OPTIONS: u32 = 3;

/// An option of `DebugOptions`: its field, and its name among XLA's flags.
type DebugOption = (u32, &'static str);
const YNN_FUSION_TYPE: DebugOption = (422, "xla_cpu_experimental_ynn_fusion_type");
const FAST_MIN_MAX: DebugOption = (140, "xla_cpu_enable_fast_min_max");

/// Dots, convolutions and reductions, each by itself (`LIBRARY_FUSION_TYPE_…`): what jaxlib 0.10.2 sends.
const TYPES: [i64; 3] = [4, 5, 3];

/// Compile options as they should be; `None` where they may stay as they are.
pub(crate) fn completed(compile_options: &[u8]) -> Option<Vec<u8>> {
    let flags = std::env::var("XLA_FLAGS").unwrap_or_default();
    // What cannot be read is XLA's to refuse.
    completed_beside(compile_options, &flags).ok().flatten()
}

/// The same with these flags of the user's.
fn completed_beside(compile_options: &[u8], flags: &str) -> Result<Option<Vec<u8>>, ProtoError> {
    let name = "CompileOptionsProto";
    let mut options = Message::parse(&compile_options.to_vec().into(), name)?;
    let Some(mut build) = options.message(BUILD_OPTIONS, name)? else { return Ok(None) };
    // Without debug options XLA takes its own.
    let Some(mut debug) = build.message(DEBUG_OPTIONS, name)? else { return Ok(None) };
    let mut changed = false;
    let (field, flag) = YNN_FUSION_TYPE;
    let mut types = debug.ints(field, name)?;
    let missing: Vec<i64> = TYPES.into_iter().filter(|added| !types.contains(added)).collect();
    if !missing.is_empty() && !flags.contains(flag) {
        types.extend(missing);
        debug.set_ints(field, &types);
        changed = true;
    }
    let (field, flag) = FAST_MIN_MAX;
    if debug.flag(field) && !flags.contains(flag) {
        debug.clear(field);
        changed = true;
    }
    build.set_message(DEBUG_OPTIONS, &debug);
    options.set_message(BUILD_OPTIONS, &build);
    Ok(changed.then(|| options.to_bytes().to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use act_hlo::proto::Field;

    /// Compile options with both, and something else on every level.
    fn options(types: &[i64], fast: bool) -> Vec<u8> {
        let (mut options, mut build, mut debug) =
            (Message::default(), Message::default(), Message::default());
        debug.push(Field::varint(60, 1));
        if fast {
            debug.push(Field::varint(FAST_MIN_MAX.0, 1));
        }
        debug.set_ints(YNN_FUSION_TYPE.0, types);
        debug.push(Field::varint(430, 1));
        build.push(Field::varint(1, 7));
        build.set_message(DEBUG_OPTIONS, &debug);
        build.push(Field::varint(4, 1));
        options.push(Field::varint(2, 1));
        options.set_message(BUILD_OPTIONS, &build);
        options.to_bytes().to_vec()
    }

    #[test]
    fn the_list_of_an_older_framework_is_completed_and_nothing_else_changed() {
        let done = |types: &[i64]| completed_beside(&options(types, false), "").unwrap();
        assert_eq!(done(&[4]), Some(options(&[4, 5, 3], false)));
        assert_eq!(done(&[4, 5, 3]), None);
        // A newer one's is longer.
        assert_eq!(done(&[9, 3, 5, 4]), None);
    }

    #[test]
    fn minima_and_maxima_keep_nans() {
        let done = |flags| completed_beside(&options(&TYPES, true), flags).unwrap();
        assert_eq!(done(""), Some(options(&TYPES, false)));
        assert_eq!(done("--xla_cpu_enable_fast_min_max=true"), None);
    }

    #[test]
    fn what_the_user_has_set_stays() {
        let flags = "--xla_dump_to=x --xla_cpu_experimental_ynn_fusion_type=";
        assert_eq!(completed_beside(&options(&[], false), flags).unwrap(), None);
        assert_eq!(completed_beside(&options(&[], true), flags).unwrap(), Some(options(&[], false)));
    }

    #[test]
    fn a_list_that_is_not_there_is_made() {
        let made = completed_beside(&options(&[], false), "").unwrap().unwrap();
        let read = |bytes: &[u8], field| {
            Message::parse(&bytes.to_vec().into(), "test").unwrap().message(field, "test").unwrap().unwrap()
        };
        let debug = read(&read(&made, BUILD_OPTIONS).to_bytes(), DEBUG_OPTIONS);
        assert_eq!(debug.ints(YNN_FUSION_TYPE.0, "test").unwrap(), TYPES);
        assert!(debug.flag(60) && debug.flag(430));
        // Where there are no debug options, XLA takes its own.
        assert_eq!(completed_beside(&[], "").unwrap(), None);
        assert_eq!(completed_beside(&[0x10, 1], "").unwrap(), None);
        assert!(completed_beside(&[0x1a, 9], "").is_err());
    }
}
