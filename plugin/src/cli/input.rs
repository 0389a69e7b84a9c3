//! Reading a kernel from a file.

use super::outcome::CliError;
use crate::compiler::RegionFile;
use act_hlo::{Graph, text::parse_graph};
use act_isa::{Space, View};
use std::io::Read;
use std::path::Path;

/// A kernel whose tensors lie row-major, each in a segment of its own.
pub(super) struct KernelInput {
    pub graph: Graph,
    pub operands: Vec<View>,
    pub results: Vec<View>,
}

/// Reads a region as dumps and corpora have it, with the strides of what does not lie row-major.
///
/// # Errors
/// The file cannot be read, or its text is no region.
pub(super) fn read_region(file: &Path) -> Result<RegionFile, CliError> {
    let text =
        std::fs::read_to_string(file).map_err(|source| CliError::Read { file: file.to_owned(), source })?;
    let region = RegionFile::parse(&text)
        .map_err(|error| CliError::Parse { file: file.to_owned(), error: Box::new(error) })?;
    if region.graph.roots().is_empty() {
        return Err(CliError::NoResult { file: file.to_owned() });
    }
    Ok(region)
}

/// Reads HLO text from a file, or standard input for `-`.
///
/// # Errors
/// The file cannot be read, or its text is no HLO module of ours.
pub(super) fn read(file: &Path) -> Result<KernelInput, CliError> {
    let read = if file == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(file)
    };
    let text = read.map_err(|source| CliError::Read { file: file.to_owned(), source })?;
    let graph = parse_graph(&text)
        .map_err(|error| CliError::Parse { file: file.to_owned(), error: Box::new(error) })?;
    if graph.roots().is_empty() {
        return Err(CliError::NoResult { file: file.to_owned() });
    }
    let views = |ids: &[act_hlo::NodeId], space: fn(u16) -> Space| -> Vec<View> {
        (0..).zip(ids).map(|(k, &id)| View::row_major(space(k), graph.shape(id))).collect()
    };
    let operands = views(graph.params(), Space::Operand);
    let results = views(graph.roots(), Space::Result);
    Ok(KernelInput { graph, operands, results })
}
