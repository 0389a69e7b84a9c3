//! Whole programs kept on disk from one process to the next, for frameworks that keep none themselves (TensorFlow): the
//! serialized executable, and what became of its regions. A key holds everything that decides what a program is compiled
//! to; what is damaged or cannot be loaded is compiled anew. A program without regions is kept under a key that says
//! nothing of its names, as TensorFlow gives equal operators different ones; of regions the user is told by name.

use std::sync::OnceLock;

use sha2::{Digest, Sha256};

use crate::anonymous;
use crate::cache_folder::CacheFolder;
use crate::client::ClientState;
use crate::compiler::hexadecimal;
use crate::cost_function;
use crate::map_order;
use crate::options::{Options, Verify};
use crate::records::RegionRecord;

const DIGEST_SIZE: usize = 32;
const LENGTH_SIZE: usize = 8;

/// A folder of programs.
#[derive(Debug)]
pub(crate) struct ProgramCache {
    folder: CacheFolder,
}

/// A program as it is kept.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KeptProgram {
    /// What became of its regions.
    pub(crate) regions: Vec<RegionRecord>,
    /// The executable in its envelope.
    pub(crate) executable: Vec<u8>,
}

impl ProgramCache {
    /// The cache that a client's options ask for. With a dump there is none, as it shows every step, nor with proofs, as
    /// they are made of what is compiled, nor with a bound on time, as another process may have more of it.
    pub(crate) fn of(options: &Options) -> Option<ProgramCache> {
        let every_step = options.dump_dir.is_some() || options.verify != Verify::Off;
        let wanted = options.cache_programs && !every_step && options.compile_timeout.is_none();
        let folder = options.cache_dir.clone().filter(|_| wanted)?;
        Some(ProgramCache { folder: CacheFolder::new(folder, options.cache_size) })
    }

    /// A program that was kept, if it is whole.
    pub(crate) fn load(&self, keys: &Keys) -> Option<KeptProgram> {
        [&keys.nameless, &keys.named].into_iter().find_map(|key| decode(&self.folder.read(key)?, key))
    }

    /// Keeps a program.
    pub(crate) fn store(&self, keys: &Keys, program: &KeptProgram) {
        let key = if program.regions.is_empty() { &keys.nameless } else { &keys.named };
        self.folder.write(key, &encode(program, key));
    }
}

/// The keys of a program.
#[derive(Debug)]
pub(crate) struct Keys {
    /// Of the program with its names.
    named: String,
    /// Of the program without them; the same where it is not known what is a name.
    nameless: String,
}

impl Keys {
    /// Hexadecimal sha256 over the client's settings with this very build, the user's cost model, the program, its
    /// format and options, XLA's flags, and what this processor can do.
    pub(crate) fn of(client: &ClientState, format: &[u8], program: &[u8], compile_options: &[u8]) -> Keys {
        let flags = std::env::var_os("XLA_FLAGS").unwrap_or_default();
        let is_hlo = format == b"hlo";
        let program = map_order::ordered(program, if is_hlo { map_order::HLO_MODULE } else { &[] });
        let compile_options = map_order::ordered(compile_options, map_order::COMPILE_OPTIONS);
        let model = cost_function::fingerprint().unwrap_or_default();
        let (settings, flags) = (client.fingerprint().as_bytes(), flags.as_encoded_bytes());
        let key = |prefix: &str, program: &[u8]| {
            let mut hash = Sha256::new_with_prefix(prefix);
            for part in [settings, model.as_bytes(), format, program, &compile_options, flags, processor()] {
                hash.update((part.len() as u64).to_le_bytes());
                hash.update(part);
            }
            hexadecimal(&hash.finalize())
        };
        let named = key("program", &program);
        let nameless = if is_hlo { anonymous::module(&program) } else { None };
        let nameless = nameless.map_or_else(|| named.clone(), |program| key("nameless program", &program));
        Keys { named, nameless }
    }
}

/// The features of the processor, as Linux lists them; XLA's machine code depends on them.
fn processor() -> &'static [u8] {
    static FEATURES: OnceLock<Vec<u8>> = OnceLock::new();
    FEATURES.get_or_init(|| {
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        cpuinfo.lines().find(|line| line.starts_with("flags")).unwrap_or_default().as_bytes().to_vec()
    })
}

/// The file of a program: its digest with the key, the length of the regions as JSON, these, and the executable.
fn encode(program: &KeptProgram, key: &str) -> Vec<u8> {
    // JSON values always serialize; empty bytes would be taken for damage.
    let regions = serde_json::to_vec(&program.regions).unwrap_or_default();
    let length = (regions.len() as u64).to_le_bytes();
    let digest = digest(key, &[&length, &regions, &program.executable]);
    [&digest[..], &length, &regions, &program.executable].concat()
}

fn decode(bytes: &[u8], key: &str) -> Option<KeptProgram> {
    let (kept_digest, contents) = bytes.split_at_checked(DIGEST_SIZE)?;
    if digest(key, &[contents])[..] != *kept_digest {
        return None;
    }
    let (length, rest) = contents.split_at_checked(LENGTH_SIZE)?;
    let length = usize::try_from(u64::from_le_bytes(length.try_into().ok()?)).ok()?;
    let (regions, executable) = rest.split_at_checked(length)?;
    Some(KeptProgram { regions: serde_json::from_slice(regions).ok()?, executable: executable.to_vec() })
}

fn digest(key: &str, parts: &[&[u8]]) -> [u8; DIGEST_SIZE] {
    let mut hash = Sha256::new_with_prefix(key);
    parts.iter().for_each(|part| hash.update(part));
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> KeptProgram {
        KeptProgram { regions: vec![serde_json::json!({"where": "host"})], executable: vec![1, 2, 3] }
    }

    #[test]
    fn what_is_kept_is_found_whole_or_not_at_all() {
        let bytes = encode(&example(), "key");
        assert_eq!(decode(&bytes, "key"), Some(example()));
        assert_eq!(decode(&bytes, "yek"), None);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert_eq!(decode(&damaged, "key"), None, "byte {at}");
            assert_eq!(decode(&bytes[..at], "key"), None, "{at} bytes");
        }
    }

    #[test]
    fn only_clients_that_ask_for_it_and_may_have_one_get_a_cache() {
        let wanted = Options { cache_programs: true, cache_dir: Some("x".into()), ..Options::default() };
        assert!(ProgramCache::of(&wanted).is_some());
        let without = [
            Options { cache_programs: false, ..wanted.clone() },
            Options { cache_dir: None, ..wanted.clone() },
            Options { dump_dir: Some("y".into()), ..wanted.clone() },
            Options { verify: Verify::On, ..wanted.clone() },
            Options { compile_timeout: Some(std::time::Duration::from_secs(1)), ..wanted },
        ];
        assert!(without.iter().all(|options| ProgramCache::of(options).is_none()));
    }
}
