//! The id of this very build: two libraries with the same id are the same bytes. It knows nothing of what
//! the id is used for.

use std::ffi::{c_int, c_void};
use std::fmt::Write;
use std::sync::OnceLock;

/// Type of the note that the linker's `--build-id` writes, and its owner's name.
const NT_GNU_BUILD_ID: u32 = 3;
const OWNER: &[u8] = b"GNU\0";

/// The build id in hexadecimal, or the package's version where the linker wrote none.
pub(crate) fn build_id() -> &'static str {
    static ID: OnceLock<String> = OnceLock::new();
    ID.get_or_init(|| {
        let mut search = Search { address: build_id as *const () as usize, found: None };
        // SAFETY: the callback gets the pointer to `search`, which outlives the call.
        unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
        search.found.unwrap_or_else(|| concat!("v", env!("CARGO_PKG_VERSION")).to_owned())
    })
}

/// The search for the loaded object that holds an address, and for its build id.
struct Search {
    address: usize,
    found: Option<String>,
}

unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _size: usize, data: *mut c_void) -> c_int {
    // SAFETY: `build_id` hands over its Search, and the dynamic linker a filled-in struct.
    let (search, info) = unsafe { (&mut *data.cast::<Search>(), &*info) };
    // SAFETY: the linker says where the program headers are and how many.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let base = info.dlpi_addr as usize;
    let range = |header: &libc::Elf64_Phdr| {
        let start = base.wrapping_add(header.p_vaddr as usize);
        start..start.wrapping_add(header.p_memsz as usize)
    };
    if !headers.iter().any(|h| h.p_type == libc::PT_LOAD && range(h).contains(&search.address)) {
        return 0;
    }
    for header in headers.iter().filter(|h| h.p_type == libc::PT_NOTE) {
        // SAFETY: a note segment of a loaded object is mapped for reading as a whole.
        let notes =
            unsafe { std::slice::from_raw_parts(range(header).start as *const u8, header.p_memsz as usize) };
        if let Some(id) = build_id_note(notes) {
            search.found = Some(id.iter().fold(String::new(), |mut hex, byte| {
                let _ = write!(hex, "{byte:02x}");
                hex
            }));
            break;
        }
    }
    1
}

/// The descriptor of the build-id note among `notes` (ELF: three words, then name and descriptor, each
/// padded to 4 bytes).
fn build_id_note(mut notes: &[u8]) -> Option<&[u8]> {
    loop {
        let word = |at: usize| -> Option<usize> {
            Some(u32::from_ne_bytes(notes.get(at..at + 4)?.try_into().ok()?) as usize)
        };
        let (name_size, desc_size, kind) = (word(0)?, word(4)?, word(8)?);
        let name = notes.get(12..12_usize.checked_add(name_size)?)?;
        let desc_start = 12 + name_size.next_multiple_of(4);
        let desc = notes.get(desc_start..desc_start.checked_add(desc_size)?)?;
        if kind == NT_GNU_BUILD_ID as usize && name == OWNER {
            return Some(desc);
        }
        notes = notes.get(desc_start + desc_size.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_note_is_found_after_others() {
        let mut notes = Vec::new();
        for (kind, name, desc) in [(1_u32, &b"GNU\0"[..], &[9_u8; 5][..]), (3, b"GNU\0", &[1, 2, 3, 4])] {
            notes.extend((name.len() as u32).to_ne_bytes());
            notes.extend((desc.len() as u32).to_ne_bytes());
            notes.extend(kind.to_ne_bytes());
            notes.extend(name);
            notes.extend(desc);
            notes.resize(notes.len().next_multiple_of(4), 0);
        }
        assert_eq!(build_id_note(&notes), Some(&[1, 2, 3, 4][..]));
        assert_eq!(build_id_note(&notes[..notes.len() - 1]), None);
        assert_eq!(build_id_note(&[255; 40]), None);
    }

    #[test]
    fn this_binary_has_one() {
        assert_eq!(build_id().len(), 40, "a sha1 in hexadecimal: {}", build_id());
    }
}
