//! The accelerator that a client compiles for. It knows nothing of how a description becomes a backend.

/// A target, as far as the framework sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The description's name, which is what `device_kind` says.
    pub name: String,
    /// Identifies the description's contents: equal fingerprints, equal descriptions.
    pub fingerprint: String,
}
