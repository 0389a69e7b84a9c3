//! A serialized executable of ours: XLA's bytes, the kernels that the program calls, and what it takes to
//! refuse damaged or foreign bytes. It knows nothing of what is inside either.
//!
//! Form: magic, format version, then `origin`, `module`, `costs` as JSON, `inner`, and key and program of each kernel,
//! all lengths as 64-bit little-endian integers; last the SHA-256 of all before it.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};
use thiserror::Error;

const MAGIC: &[u8; 8] = b"ACT-PJRT";
const FORMAT: u64 = 2;
const DIGEST_SIZE: usize = 32;

/// The parts of a serialized executable.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Envelope {
    /// The build, the target and the settings that it was compiled with.
    pub(crate) origin: String,
    /// The module's name.
    pub(crate) module: String,
    /// What the program costs, as far as the inner library's bytes do not tell.
    pub(crate) costs: BTreeMap<String, f64>,
    /// The inner library's bytes.
    pub(crate) inner: Vec<u8>,
    /// The kernels that it calls: key and program.
    pub(crate) kernels: BTreeMap<String, Vec<u8>>,
}

/// Why bytes are not an executable that can be loaded.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum EnvelopeError {
    #[error("these bytes are not an executable serialized by act-pjrt")]
    Foreign,
    #[error("the serialized executable is damaged")]
    Damaged,
    #[error("the serialized executable is of format {0}, not {FORMAT}")]
    OtherFormat(u64),
    #[error("the executable was compiled by \"{theirs}\", which is not \"{ours}\"")]
    OtherOrigin { theirs: String, ours: String },
}

impl Envelope {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(FORMAT.to_le_bytes());
        let mut part = |part: &[u8]| {
            bytes.extend((part.len() as u64).to_le_bytes());
            bytes.extend(part);
        };
        part(self.origin.as_bytes());
        part(self.module.as_bytes());
        // A map of finite numbers always serializes; empty bytes would be refused when read.
        part(&serde_json::to_vec(&self.costs).unwrap_or_default());
        part(&self.inner);
        for (key, program) in &self.kernels {
            part(key.as_bytes());
            part(program);
        }
        let digest = Sha256::digest(&bytes);
        bytes.extend(digest);
        bytes
    }

    /// Reads what [`Envelope::to_bytes`] wrote.
    ///
    /// # Errors
    /// The bytes are not whole, or not from `origin`.
    pub(crate) fn from_bytes(bytes: &[u8], origin: &str) -> Result<Envelope, EnvelopeError> {
        if !bytes.starts_with(MAGIC) {
            return Err(EnvelopeError::Foreign);
        }
        let content_size = bytes.len().checked_sub(DIGEST_SIZE).ok_or(EnvelopeError::Damaged)?;
        let (content, digest) = bytes.split_at(content_size);
        if Sha256::digest(content)[..] != *digest {
            return Err(EnvelopeError::Damaged);
        }
        let mut rest = content.get(MAGIC.len()..).ok_or(EnvelopeError::Damaged)?;
        let format = take_integer(&mut rest)?;
        if format != FORMAT {
            return Err(EnvelopeError::OtherFormat(format));
        }
        let theirs = take_text(&mut rest)?;
        if theirs != origin {
            return Err(EnvelopeError::OtherOrigin { theirs, ours: origin.to_owned() });
        }
        let module = take_text(&mut rest)?;
        let costs = serde_json::from_slice(take_part(&mut rest)?).map_err(|_| EnvelopeError::Damaged)?;
        let inner = take_part(&mut rest)?.to_vec();
        let mut kernels = BTreeMap::new();
        while !rest.is_empty() {
            let key = take_text(&mut rest)?;
            kernels.insert(key, take_part(&mut rest)?.to_vec());
        }
        Ok(Envelope { origin: theirs, module, costs, inner, kernels })
    }
}

fn take_integer(rest: &mut &[u8]) -> Result<u64, EnvelopeError> {
    let (head, tail) = rest.split_first_chunk::<8>().ok_or(EnvelopeError::Damaged)?;
    *rest = tail;
    Ok(u64::from_le_bytes(*head))
}

fn take_part<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], EnvelopeError> {
    let size = usize::try_from(take_integer(rest)?).map_err(|_| EnvelopeError::Damaged)?;
    let (part, tail) = rest.split_at_checked(size).ok_or(EnvelopeError::Damaged)?;
    *rest = tail;
    Ok(part)
}

fn take_text(rest: &mut &[u8]) -> Result<String, EnvelopeError> {
    String::from_utf8(take_part(rest)?.to_vec()).map_err(|_| EnvelopeError::Damaged)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Envelope {
        Envelope {
            origin: "here".to_owned(),
            module: "jit_f".to_owned(),
            costs: BTreeMap::from([("flops".to_owned(), 12.5)]),
            inner: vec![1, 2, 3],
            kernels: BTreeMap::from([("a".to_owned(), vec![4]), ("b".to_owned(), vec![])]),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let bytes = example().to_bytes();
        assert_eq!(Envelope::from_bytes(&bytes, "here"), Ok(example()));
    }

    #[test]
    fn every_damaged_byte_and_every_lost_tail_is_noticed() {
        let bytes = example().to_bytes();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(Envelope::from_bytes(&damaged, "here").is_err(), "byte {at}");
            assert!(Envelope::from_bytes(&bytes[..at], "here").is_err(), "{at} bytes");
        }
    }

    #[test]
    fn a_whole_envelope_with_false_lengths_is_refused() {
        let mut content = MAGIC.to_vec();
        content.extend(FORMAT.to_le_bytes());
        content.extend(u64::MAX.to_le_bytes());
        let digest = Sha256::digest(&content);
        content.extend(digest);
        assert_eq!(Envelope::from_bytes(&content, "here"), Err(EnvelopeError::Damaged));
    }

    #[test]
    fn another_origin_is_refused() {
        let error = Envelope::from_bytes(&example().to_bytes(), "there").unwrap_err();
        assert_eq!(error, EnvelopeError::OtherOrigin { theirs: "here".to_owned(), ours: "there".to_owned() });
    }

    #[test]
    fn foreign_bytes_are_told_from_damaged_ones() {
        assert_eq!(Envelope::from_bytes(b"\x0a\x05hello", "here"), Err(EnvelopeError::Foreign));
        assert_eq!(Envelope::from_bytes(b"", "here"), Err(EnvelopeError::Foreign));
    }
}
