//! Z3 through its C interface, opened at run time: SMT-LIB text in, a verdict out. The text is all that a solver sees, so
//! that a dumped query can be replayed by any solver. Knows nothing of what the queries mean.

use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_void};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What a solver says about the assertions of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// They hold together; the model as Z3 prints it.
    Satisfiable {
        model: String,
    },
    Unsatisfiable,
    /// Neither was found; the solver's reason, such as a time-out.
    Unknown {
        reason: String,
    },
}

/// Why there is no verdict.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SolverError {
    #[error(
        "cannot open Z3 at {path}: {reason}; install it with `pip install act-pjrt[verify]`, or set ACT_Z3_LIB to its library"
    )]
    Missing { path: PathBuf, reason: String },
    #[error("{path} lacks {symbol}: it is no Z3 library")]
    NotZ3 { path: PathBuf, symbol: &'static str },
    #[error("the script contains a NUL character")]
    Nul,
    #[error("the solver refuses the script: {0}")]
    Script(String),
}

type MakeConfig = unsafe extern "C" fn() -> *mut c_void;
type DeleteConfig = unsafe extern "C" fn(*mut c_void);
type MakeContext = unsafe extern "C" fn(*mut c_void) -> *mut c_void;
type DeleteContext = unsafe extern "C" fn(*mut c_void);
type Evaluate = unsafe extern "C" fn(*mut c_void, *const c_char) -> *const c_char;
type ErrorHandler = unsafe extern "C" fn(*mut c_void, i32);
type SetErrorHandler = unsafe extern "C" fn(*mut c_void, ErrorHandler);

/// An opened Z3. Shared between threads: every query has a context of its own.
pub struct Solver {
    make_config: MakeConfig,
    delete_config: DeleteConfig,
    make_context: MakeContext,
    delete_context: DeleteContext,
    evaluate: Evaluate,
    set_error_handler: SetErrorHandler,
    /// Keeps the functions above alive.
    _library: Library,
}

/// Z3's default handler ends the process; errors come back in the text of the answer as well.
unsafe extern "C" fn ignore_error(_context: *mut c_void, _code: i32) {}

impl Solver {
    /// Opens the library.
    ///
    /// # Errors
    /// It is missing, or not Z3.
    pub fn open(path: &Path) -> Result<Solver, SolverError> {
        // SAFETY: Z3's library has no constructors with preconditions.
        let library = unsafe { Library::new(path) }
            .map_err(|e| SolverError::Missing { path: path.to_owned(), reason: e.to_string() })?;
        macro_rules! symbol {
            ($name:literal, $ty:ty) => {{
                // SAFETY: the type is that of the function in z3_api.h.
                let found = unsafe { library.get::<$ty>(concat!($name, "\0").as_bytes()) };
                *found.map_err(|_| SolverError::NotZ3 { path: path.to_owned(), symbol: $name })?
            }};
        }
        Ok(Solver {
            make_config: symbol!("Z3_mk_config", MakeConfig),
            delete_config: symbol!("Z3_del_config", DeleteConfig),
            make_context: symbol!("Z3_mk_context", MakeContext),
            delete_context: symbol!("Z3_del_context", DeleteContext),
            evaluate: symbol!("Z3_eval_smtlib2_string", Evaluate),
            set_error_handler: symbol!("Z3_set_error_handler", SetErrorHandler),
            _library: library,
        })
    }

    /// Decides the assertions of a script of declarations and assertions, within `limit` of wall time. Deterministic but
    /// for the limit.
    ///
    /// # Errors
    /// The script is not SMT-LIB.
    pub fn check(&self, script: &str, limit: Duration) -> Result<Verdict, SolverError> {
        let context = Context::new(self);
        // Else Z3 takes the signal of Ctrl-C for itself while it runs, and the process goes on. Releases without the option
        // refuse it.
        let _ = context.eval("(set-option :ctrl_c false)");
        let milliseconds = u32::try_from(limit.as_millis()).unwrap_or(u32::MAX);
        context.eval(&format!("(set-option :timeout {milliseconds})"))?;
        context.eval(script)?;
        let answer = context.eval("(check-sat)")?;
        match answer.trim() {
            "sat" => Ok(Verdict::Satisfiable { model: context.eval("(get-model)")?.trim().to_owned() }),
            "unsat" => Ok(Verdict::Unsatisfiable),
            "unknown" => {
                let reason = context.eval("(get-info :reason-unknown)")?;
                Ok(Verdict::Unknown { reason: reason.trim().to_owned() })
            }
            other => Err(SolverError::Script(other.to_owned())),
        }
    }
}

/// One query's context.
struct Context<'a> {
    solver: &'a Solver,
    raw: *mut c_void,
}

impl Context<'_> {
    fn new(solver: &Solver) -> Context<'_> {
        // SAFETY: a configuration is used for one context and freed; the handler is a function that lives forever.
        let raw = unsafe {
            let config = (solver.make_config)();
            let raw = (solver.make_context)(config);
            (solver.delete_config)(config);
            (solver.set_error_handler)(raw, ignore_error);
            raw
        };
        Context { solver, raw }
    }

    fn eval(&self, text: &str) -> Result<String, SolverError> {
        let text = CString::new(text).map_err(|_| SolverError::Nul)?;
        // SAFETY: the context is alive and used by this thread alone; Z3 keeps the answer until the next call.
        let answer = unsafe {
            let answer = (self.solver.evaluate)(self.raw, text.as_ptr());
            if answer.is_null() {
                String::new()
            } else {
                CStr::from_ptr(answer).to_string_lossy().into_owned()
            }
        };
        if answer.contains("(error") {
            Err(SolverError::Script(answer.trim().to_owned()))
        } else {
            Ok(answer)
        }
    }
}

impl Drop for Context<'_> {
    fn drop(&mut self) {
        // SAFETY: made by `Context::new`, freed once.
        unsafe { (self.solver.delete_context)(self.raw) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn solver() -> Solver {
        let path = std::env::var_os("ACT_Z3_LIB").expect("ACT_Z3_LIB names libz3.so, as ci/test sets it");
        Solver::open(Path::new(&path)).unwrap()
    }

    const LIMIT: Duration = Duration::from_secs(20);

    #[test]
    fn tells_true_from_false() {
        let solver = solver();
        let wraps = "(declare-const x (_ BitVec 8)) (assert (bvult (bvadd x #x01) x))";
        let Verdict::Satisfiable { model } = solver.check(wraps, LIMIT).unwrap() else { panic!("255 wraps") };
        assert!(model.contains("#xff"), "{model}");
        let never = "(declare-const x (_ BitVec 8)) (assert (bvult x #x00))";
        assert_eq!(solver.check(never, LIMIT), Ok(Verdict::Unsatisfiable));
    }

    #[test]
    fn queries_do_not_see_each_other() {
        let solver = solver();
        assert_eq!(solver.check("(assert false)", LIMIT), Ok(Verdict::Unsatisfiable));
        assert!(matches!(solver.check("(assert true)", LIMIT), Ok(Verdict::Satisfiable { .. })));
    }

    #[test]
    fn a_hard_query_ends_at_its_limit() {
        // Factors of a product of two large primes.
        let hard = "(declare-const p (_ BitVec 128)) (declare-const q (_ BitVec 128))
            (assert (= (bvmul p q) #x0000000000000000f5e9a2b3c1d4e7f9)) (assert (bvugt p #x00000000000000000000000000000001))
            (assert (bvugt q #x00000000000000000000000000000001)) (assert (bvult p #x00000000000000010000000000000000))
            (assert (bvult q #x00000000000000010000000000000000)) (assert (bvult p q))
            (assert (distinct ((_ extract 3 0) p) #x1)) (assert (distinct ((_ extract 3 0) q) #x1))";
        let verdict = solver().check(hard, Duration::from_millis(50)).unwrap();
        assert!(matches!(verdict, Verdict::Unknown { .. }), "{verdict:?}");
    }

    #[test]
    fn bad_scripts_and_missing_libraries_are_errors() {
        let solver = solver();
        assert!(matches!(solver.check("(assert nonsense)", LIMIT), Err(SolverError::Script(_))));
        assert_eq!(solver.check("\0", LIMIT), Err(SolverError::Nul));
        let missing = Solver::open(Path::new("missing/libz3.so")).err().unwrap();
        assert!(missing.to_string().contains("pip install act-pjrt[verify]"), "{missing}");
    }
}
