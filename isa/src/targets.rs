//! The descriptions that ship with the project, and loading one by name or path.

use crate::model::Isa;
use crate::syntax::Diagnostics;
use crate::syntax::diagnostic::nearest;
use std::path::Path;

/// (name, text) of every known target, sorted by name.
const TARGETS: &[(&str, &str)] = &[
    ("amx", include_str!("../targets/amx.taidl")),
    ("eva", include_str!("../targets/eva.taidl")),
    ("feather", include_str!("../targets/feather.taidl")),
    ("gemmini", include_str!("../targets/gemmini.taidl")),
    ("gemmini_plus", include_str!("../targets/gemmini_plus.taidl")),
    ("h_qkv", include_str!("../targets/h_qkv.taidl")),
    ("tpu_v1", include_str!("../targets/tpu_v1.taidl")),
    ("trainium", include_str!("../targets/trainium.taidl")),
    ("x86", include_str!("../targets/x86.taidl")),
];

/// Why a target could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    #[error(
        "unknown target `{name}`{}; the known ones are {known}, or give the path of a .taidl file",
        nearest.as_ref().map(|n| format!(" (`{n}`?)")).unwrap_or_default()
    )]
    Unknown { name: String, nearest: Option<String>, known: String },
    #[error("cannot read {path}: {error}")]
    Unreadable { path: String, error: std::io::Error },
    #[error("{0}")]
    Description(#[from] Diagnostics),
}

/// Name and text of every target that ships with the project.
pub fn targets() -> &'static [(&'static str, &'static str)] {
    TARGETS
}

/// The description called `name_or_path`: a known target, or a file when it names one (a path separator or the ending
/// `.taidl` in it).
///
/// # Errors
/// An unknown name, an unreadable file, a faulty description.
pub fn load_target(name_or_path: &str) -> Result<Isa, TargetError> {
    if let Some((name, text)) = TARGETS.iter().find(|(name, _)| *name == name_or_path) {
        return Ok(Isa::parse(text, &format!("{name}.taidl"))?);
    }
    let path = Path::new(name_or_path);
    if path.components().count() < 2 && path.extension().is_none_or(|e| e != "taidl") {
        let known = TARGETS.iter().map(|(name, _)| *name).collect::<Vec<&str>>().join(", ");
        let nearest = nearest(name_or_path, TARGETS.iter().map(|(name, _)| *name));
        return Err(TargetError::Unknown { name: name_or_path.to_owned(), nearest, known });
    }
    let text = std::fs::read_to_string(path)
        .map_err(|error| TargetError::Unreadable { path: name_or_path.to_owned(), error })?;
    Ok(Isa::parse(&text, name_or_path)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_loads_without_a_warning_and_prints_to_itself() {
        for (name, text) in targets() {
            let (isa, warnings) = Isa::parse_with_warnings(text, name).unwrap_or_else(|e| panic!("{e}"));
            assert!(warnings.list.is_empty(), "{warnings}");
            assert_eq!(isa.name, *name);
            let again = Isa::parse(&isa.print(), name).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(isa, again);
        }
        assert!(targets().is_sorted());
    }

    /// The array's size is one constant of the description.
    #[test]
    fn gemmini_scales_with_its_constant() {
        let (_, text) = targets().iter().find(|(name, _)| *name == "gemmini").unwrap();
        assert!(text.contains("const DIM = 16"));
        let small = Isa::parse(&text.replace("const DIM = 16", "const DIM = 8"), "small").unwrap();
        assert_eq!(small.buffers[0].access, [16384, 8]);
        let matmul = small.instr(small.instr_named("matmul").unwrap());
        assert!(matmul.instantiate(&small, &[crate::AttrVal::Int(8); 3]).is_ok());
        assert!(matmul.instantiate(&small, &[crate::AttrVal::Int(9); 3]).is_err());
    }

    #[test]
    fn unknown_targets_list_the_known_ones() {
        let message = load_target("gemini").unwrap_err().to_string();
        assert!(message.starts_with("unknown target `gemini` (`gemmini`?)"), "{message}");
        assert!(targets().iter().all(|(name, _)| message.contains(name)), "{message}");
        assert!(matches!(load_target("no/such.taidl"), Err(TargetError::Unreadable { .. })));
        assert!(matches!(load_target("such.taidl"), Err(TargetError::Unreadable { .. })));
        assert_eq!(load_target("h_qkv").unwrap().instrs.len(), 7);
    }
}
