//! What a user may set: the options of `PJRT_Client_Create` and the environment variables that mean the
//! same. An explicit option beats the environment. It knows nothing of what the settings do.

use std::collections::BTreeMap;
use std::ffi::c_char;
use std::path::PathBuf;
use std::time::Duration;

use pjrt_abi::{NamedValue, named_value_type};
use thiserror::Error;

/// The options of ours and their environment variables. Other options belong to the inner library.
const OWN_OPTIONS: &[(&str, &str)] = &[
    ("target", "ACT_TARGET"),
    ("dump", "ACT_DUMP"),
    ("dump_dir", "ACT_DUMP_DIR"),
    ("log", "ACT_LOG"),
    ("offload", "ACT_OFFLOAD"),
    ("numerics", "ACT_NUMERICS"),
    ("alloc", "ACT_ALLOC"),
    ("strict", "ACT_STRICT"),
    ("cache_dir", "ACT_CACHE_DIR"),
    ("cache_size", "ACT_CACHE_SIZE"),
    ("cache_programs", "ACT_CACHE_PROGRAMS"),
    ("compile_timeout", "ACT_COMPILE_TIMEOUT"),
    ("verify", "ACT_VERIFY"),
    ("verify_timeout", "ACT_VERIFY_TIMEOUT"),
    ("xla_plugin", "ACT_XLA_PLUGIN"),
];

/// Where dumps go unless said otherwise.
const DEFAULT_DUMP_DIR: &str = "act_dump";

/// The value of `ACT_CACHE_DIR` that says that nothing is kept.
const NO_CACHE: &str = "off";
/// The folder below the user's cache folder where kernels are kept unless said otherwise.
const DEFAULT_CACHE: &str = "act-pjrt/kernels";

/// How much floating-point algebra a compilation may use (`ACT_NUMERICS`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Numerics {
    /// None.
    Exact,
    /// What XLA's CPU backend itself does.
    #[default]
    Xla,
    /// Also re-association and the like.
    Fast,
}

/// What is offered to the target (`ACT_OFFLOAD`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Offered {
    /// Products where the target has an instruction for them, everything otherwise.
    #[default]
    Auto,
    /// Matrix products and convolutions, with what surrounds them.
    Products,
    /// Also what computes without one.
    All,
}

/// Which allocator places buffers on chip (`ACT_ALLOC`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Allocator {
    /// Whichever solves the problem at hand soonest.
    #[default]
    Auto,
    /// Always the constraint solver.
    CpSat,
}

/// Whether compiled kernels are proved equal to what was asked for (`ACT_VERIFY`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// No.
    #[default]
    Off,
    /// A kernel that is refuted fails its program.
    On,
    /// So does one that is not proved.
    Strict,
}

/// The settings of one client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Name of a description, or path of a `.taidl` file; `None`: everything runs on the host.
    pub target: Option<String>,
    /// Where to write dumps; `None`: nowhere.
    pub dump_dir: Option<PathBuf>,
    /// Filter of the messages to stderr.
    pub log: Option<String>,
    /// See [`Offered`].
    pub offload: Offered,
    /// See [`Numerics`].
    pub numerics: Numerics,
    /// See [`Allocator`].
    pub allocator: Allocator,
    /// Whether the simulator takes hazards for faults.
    pub strict: bool,
    /// Where compiled kernels are kept from one process to the next; `None`: nowhere.
    pub cache_dir: Option<PathBuf>,
    /// The most bytes that the folder may take; `None`: as many as are usual.
    pub cache_size: Option<u64>,
    /// Whether whole programs are kept there too.
    pub cache_programs: bool,
    /// The most time that the search for one kernel's code may take.
    pub compile_timeout: Option<Duration>,
    /// See [`Verify`].
    pub verify: Verify,
    /// The most time that the check of one kernel may take; `None`: as long as is usual.
    pub verify_timeout: Option<Duration>,
    /// The PJRT library to run on.
    pub xla_plugin: Option<PathBuf>,
}

/// A setting that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OptionError {
    /// The value is none of those that exist.
    #[error("{}: \"{value}\" is not one of {}", both_names(option), known.join(", "))]
    UnknownValue {
        /// The option's name.
        option: &'static str,
        /// The value given.
        value: String,
        /// The values that exist.
        known: &'static [&'static str],
    },
    /// The value is not a number of seconds.
    #[error("{}: \"{value}\" is not a number of seconds, for instance 30 or 0.5", both_names(option))]
    NoSeconds {
        /// The option's name.
        option: &'static str,
        /// The value given.
        value: String,
    },
    /// The value is not a size.
    #[error("{}: \"{value}\" is not a number of MiB, for instance 512", both_names(option))]
    NoSize {
        /// The option's name.
        option: &'static str,
        /// The value given.
        value: String,
    },
    /// The value has a type that no option of ours has.
    #[error("option {option}: a string, an integer or a truth value is expected")]
    WrongType {
        /// The option's name.
        option: &'static str,
    },
}

/// An option's name and its variable's, for messages.
fn both_names(option: &str) -> String {
    match OWN_OPTIONS.iter().find(|(name, _)| *name == option) {
        Some((name, variable)) => format!("option {name} ({variable})"),
        None => format!("option {option}"),
    }
}

/// The options of a client, ours taken out.
#[derive(Debug)]
pub(crate) struct CreateOptions {
    /// Ours.
    pub(crate) own: Options,
    /// The inner library's, as they came; they borrow from the caller's array.
    pub(crate) forwarded: Vec<NamedValue>,
}

impl CreateOptions {
    /// Reads the options of `PJRT_Client_Create`, and `environment` for those not given.
    ///
    /// # Errors
    /// A value that an option of ours cannot have.
    ///
    /// # Safety
    /// Names and values in `given` must be as the C header demands.
    pub(crate) unsafe fn read(
        given: &[NamedValue],
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<CreateOptions, OptionError> {
        let mut texts = BTreeMap::new();
        let mut forwarded = Vec::new();
        for value in given {
            // SAFETY: the caller vouches for the array's elements.
            let name = unsafe { named_value_name(value) };
            match OWN_OPTIONS.iter().find(|(own, _)| *own == name) {
                Some(&(own, _)) => {
                    // SAFETY: as above.
                    let value = unsafe { value_text(value) }.ok_or(OptionError::WrongType { option: own })?;
                    texts.insert(own, value);
                }
                None => forwarded.push(*value),
            }
        }
        for &(own, variable) in OWN_OPTIONS {
            if let (false, Some(value)) = (texts.contains_key(own), environment(variable)) {
                texts.insert(own, value);
            }
        }
        let mut own = Options::from_texts(&texts)?;
        if !texts.contains_key("cache_dir") {
            own.cache_dir = default_cache_dir(&environment);
        }
        Ok(CreateOptions { own, forwarded })
    }

    /// Whether an option of the inner library is given.
    pub(crate) fn forwards(&self, name: &str) -> bool {
        // SAFETY: `read`'s caller vouched for these elements.
        self.forwarded.iter().any(|value| unsafe { named_value_name(value) } == name)
    }
}

impl Options {
    /// The settings in the environment of the process.
    ///
    /// # Errors
    /// A value that a setting cannot have.
    pub fn from_environment() -> Result<Options, OptionError> {
        // SAFETY: there are no values to vouch for.
        unsafe { CreateOptions::read(&[], environment_variable) }.map(|options| options.own)
    }

    fn from_texts(texts: &BTreeMap<&'static str, String>) -> Result<Options, OptionError> {
        // An empty value is what a user sets to undo a setting.
        let given = |option| texts.get(option).filter(|text| !text.is_empty());
        let flag = |option| choice(given(option), option, FLAG_VALUES);
        let dump_dir = given("dump_dir").map_or(DEFAULT_DUMP_DIR, String::as_str);
        Ok(Options {
            target: given("target").cloned(),
            dump_dir: flag("dump")?.then(|| PathBuf::from(dump_dir)),
            log: given("log").cloned(),
            offload: choice(given("offload"), "offload", OFFERED_VALUES)?,
            numerics: choice(given("numerics"), "numerics", NUMERICS_VALUES)?,
            allocator: choice(given("alloc"), "alloc", ALLOCATOR_VALUES)?,
            strict: flag("strict")?,
            cache_dir: given("cache_dir").filter(|&folder| folder != NO_CACHE).map(PathBuf::from),
            cache_size: given("cache_size").map(|text| mebibytes("cache_size", text)).transpose()?,
            cache_programs: flag("cache_programs")?,
            compile_timeout: given("compile_timeout")
                .map(|text| seconds("compile_timeout", text))
                .transpose()?,
            verify: choice(given("verify"), "verify", VERIFY_VALUES)?,
            verify_timeout: given("verify_timeout")
                .map(|text| seconds("verify_timeout", text))
                .transpose()?,
            xla_plugin: given("xla_plugin").map(PathBuf::from),
        })
    }
}

/// The user's cache folder, as the XDG base directory specification has it; `None` where there is no home either.
fn default_cache_dir(environment: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let named = |name| environment(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let caches = named("XDG_CACHE_HOME").or_else(|| Some(named("HOME")?.join(".cache")))?;
    Some(caches.join(DEFAULT_CACHE))
}

fn seconds(option: &'static str, text: &str) -> Result<Duration, OptionError> {
    let parsed = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    parsed.ok_or_else(|| OptionError::NoSeconds { option, value: text.to_owned() })
}

/// A size in MiB, in bytes.
fn mebibytes(option: &'static str, text: &str) -> Result<u64, OptionError> {
    let parsed = text.parse::<f64>().ok().filter(|size| size.is_finite() && *size >= 0.0);
    let size = parsed.ok_or_else(|| OptionError::NoSize { option, value: text.to_owned() })?;
    Ok((size * f64::from(1 << 20)) as u64)
}

/// The names of a setting's values, and the values.
type Choices<T> = (&'static [&'static str], &'static [T]);

const FLAG_VALUES: Choices<bool> =
    (&["0", "1", "false", "true", "off", "on"], &[false, true, false, true, false, true]);
const OFFERED_VALUES: Choices<Offered> =
    (&["auto", "products", "all"], &[Offered::Auto, Offered::Products, Offered::All]);
const NUMERICS_VALUES: Choices<Numerics> =
    (&["exact", "xla", "fast"], &[Numerics::Exact, Numerics::Xla, Numerics::Fast]);
const VERIFY_VALUES: Choices<Verify> = (
    &["0", "1", "strict", "false", "true", "off", "on"],
    &[Verify::Off, Verify::On, Verify::Strict, Verify::Off, Verify::On, Verify::Off, Verify::On],
);
const ALLOCATOR_VALUES: Choices<Allocator> = (&["auto", "cpsat"], &[Allocator::Auto, Allocator::CpSat]);

/// The value with the given name, or the default where none is given.
fn choice<T: Copy + Default>(
    given: Option<&String>,
    option: &'static str,
    (known, values): Choices<T>,
) -> Result<T, OptionError> {
    let Some(text) = given else { return Ok(T::default()) };
    let found = known.iter().zip(values).find(|(name, _)| name.eq_ignore_ascii_case(text));
    match found {
        Some((_, value)) => Ok(*value),
        None => Err(OptionError::UnknownValue { option, value: text.clone(), known }),
    }
}

/// The process's environment, as [`CreateOptions::read`] wants it.
pub(crate) fn environment_variable(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}

/// The name of a named value.
///
/// # Safety
/// The value must be as the C header demands.
unsafe fn named_value_name(value: &NamedValue) -> String {
    // SAFETY: the caller's promise.
    unsafe { text(value.name, value.name_size) }
}

/// A byte string of the C interface.
///
/// # Safety
/// `data` must point to `size` readable bytes, or `size` be 0.
unsafe fn text(data: *const c_char, size: usize) -> String {
    if data.is_null() || size == 0 {
        return String::new();
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), size) };
    String::from_utf8_lossy(bytes).into_owned()
}

/// A value as text; `None` for types that no option of ours has.
///
/// # Safety
/// The value's member must be the one that its type says.
unsafe fn value_text(value: &NamedValue) -> Option<String> {
    // SAFETY: the caller's promise, for each member read.
    unsafe {
        match value.r#type {
            named_value_type::STRING => Some(text(value.value.string_value, value.value_size)),
            named_value_type::INT64 => Some(value.value.int64_value.to_string()),
            named_value_type::BOOL => Some(u8::from(value.value.bool_value).to_string()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use pjrt_abi::NamedValueUnion;
    use pjrt_abi::layout::CStruct;

    use super::*;

    fn string_value(name: &'static str, value: &'static str) -> NamedValue {
        NamedValue {
            name: name.as_ptr().cast(),
            name_size: name.len(),
            r#type: named_value_type::STRING,
            value: NamedValueUnion { string_value: value.as_ptr().cast() },
            value_size: value.len(),
            ..NamedValue::zeroed()
        }
    }

    fn integer_value(name: &'static str, value: i64) -> NamedValue {
        NamedValue {
            r#type: named_value_type::INT64,
            value: NamedValueUnion { int64_value: value },
            value_size: 1,
            ..string_value(name, "")
        }
    }

    fn read(given: &[NamedValue], environment: &[(&str, &str)]) -> Result<CreateOptions, OptionError> {
        let variable = |name: &str| {
            environment.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        // SAFETY: the values above are well-formed.
        unsafe { CreateOptions::read(given, variable) }
    }

    #[test]
    fn options_beat_the_environment() {
        let environment = [("ACT_TARGET", "from_env"), ("ACT_NUMERICS", "fast"), ("ACT_DUMP", "1")];
        let options = read(&[string_value("target", "from_option")], &environment).unwrap().own;
        assert_eq!(options.target.as_deref(), Some("from_option"));
        assert_eq!(options.numerics, Numerics::Fast);
        assert_eq!(options.dump_dir, Some(PathBuf::from("act_dump")));
    }

    #[test]
    fn an_empty_option_undoes_the_environment() {
        let options = read(&[string_value("target", "")], &[("ACT_TARGET", "x")]).unwrap().own;
        assert_eq!(options.target, None);
    }

    #[test]
    fn kernels_are_kept_in_the_cache_folder_of_the_user() {
        let folder = |environment: &[(&str, &str)]| read(&[], environment).unwrap().own.cache_dir;
        let home = ("HOME", "/home/u");
        assert_eq!(folder(&[home]), Some(PathBuf::from("/home/u/.cache/act-pjrt/kernels")));
        assert_eq!(
            folder(&[home, ("XDG_CACHE_HOME", "/caches")]),
            Some(PathBuf::from("/caches/act-pjrt/kernels"))
        );
        assert_eq!(folder(&[home, ("ACT_CACHE_DIR", "here")]), Some(PathBuf::from("here")));
        assert_eq!(folder(&[home, ("ACT_CACHE_DIR", "off")]), None);
        assert_eq!(folder(&[]), None);
    }

    #[test]
    fn a_time_is_a_number_of_seconds() {
        let timeout = |text| read(&[], &[("ACT_COMPILE_TIMEOUT", text)]).map(|o| o.own.compile_timeout);
        assert_eq!(timeout("0.5"), Ok(Some(Duration::from_millis(500))));
        for wrong in ["soon", "-1", "nan"] {
            let error = timeout(wrong).unwrap_err().to_string();
            assert!(error.contains("ACT_COMPILE_TIMEOUT") && error.contains(wrong), "{error}");
        }
    }

    #[test]
    fn a_size_is_a_number_of_mebibytes() {
        let size = |text| read(&[], &[("ACT_CACHE_SIZE", text)]).map(|o| o.own.cache_size);
        assert_eq!(size("1.5"), Ok(Some(3 << 19)));
        assert_eq!(size(""), Ok(None));
        for wrong in ["big", "-1", "inf"] {
            let error = size(wrong).unwrap_err().to_string();
            assert!(error.contains("ACT_CACHE_SIZE") && error.contains(wrong), "{error}");
        }
    }

    #[test]
    fn only_foreign_options_are_forwarded() {
        let given =
            [integer_value("cpu_device_count", 4), integer_value("verify", 1), integer_value("strict", 1)];
        let options = read(&given, &[]).unwrap();
        assert_eq!((options.own.verify, options.own.strict), (Verify::On, true));
        assert_eq!(options.forwarded.len(), 1);
        assert!(options.forwards("cpu_device_count") && !options.forwards("verify"));
    }

    #[test]
    fn wrong_values_name_the_option_and_the_choice() {
        let error = read(&[], &[("ACT_NUMERICS", "sloppy")]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "option numerics (ACT_NUMERICS): \"sloppy\" is not one of exact, xla, fast"
        );
        let error = read(&[], &[("ACT_VERIFY", "maybe")]).unwrap_err().to_string();
        assert!(error.contains("ACT_VERIFY") && error.contains("strict"), "{error}");
        let float = NamedValue { r#type: named_value_type::FLOAT, ..integer_value("dump", 0) };
        assert_eq!(read(&[float], &[]).unwrap_err(), OptionError::WrongType { option: "dump" });
    }
}
