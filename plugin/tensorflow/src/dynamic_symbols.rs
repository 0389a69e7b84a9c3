//! Symbols of a library that the process has loaded: by name, and by the beginning of the name, which is all that is
//! known of a C++ function whose signature names a version. Knows nothing of TensorFlow.

use std::ffi::{CStr, CString, c_int, c_void};

/// Tags of ELF's dynamic section.
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_GNU_HASH: i64 = 0x6fff_fef5;

/// One entry of the dynamic section (`Elf64_Dyn`).
#[repr(C)]
struct DynamicEntry {
    tag: i64,
    value: u64,
}

/// A loaded library.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoadedLibrary {
    handle: *mut c_void,
    soname: &'static CStr,
}

// SAFETY: a handle of the dynamic linker may be used by any thread.
unsafe impl Send for LoadedLibrary {}
// SAFETY: as above.
unsafe impl Sync for LoadedLibrary {}

impl LoadedLibrary {
    /// The library of this name, if the process has loaded it. It stays loaded from now on.
    pub(crate) fn find(soname: &'static CStr) -> Option<LoadedLibrary> {
        // SAFETY: the name is null-terminated, and nothing is loaded that is not there.
        let handle = unsafe { libc::dlopen(soname.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD) };
        (!handle.is_null()).then_some(LoadedLibrary { handle, soname })
    }

    /// The address of an exported symbol.
    pub(crate) fn symbol(self, name: &CStr) -> Option<*mut c_void> {
        // SAFETY: a live handle and a null-terminated name.
        let address = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
        (!address.is_null()).then_some(address)
    }

    /// The addresses of the exported symbols whose names begin so; `None` for those of which there is not exactly one.
    pub(crate) fn symbols_by_prefix<const N: usize>(self, prefixes: [&str; N]) -> [Option<*mut c_void>; N] {
        let mut search =
            Search { soname: self.soname.to_bytes(), prefixes: &prefixes, found: vec![Vec::new(); N] };
        // SAFETY: the callback gets the pointer to `search`, which outlives the call.
        unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
        let mut found = search.found.into_iter();
        std::array::from_fn(|_| match &found.next()?[..] {
            [name] => self.symbol(name),
            _ => None,
        })
    }
}

struct Search<'a> {
    soname: &'a [u8],
    prefixes: &'a [&'a str],
    /// Names that begin so, for each prefix.
    found: Vec<Vec<CString>>,
}

unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _size: usize, data: *mut c_void) -> c_int {
    // SAFETY: `symbols_by_prefix` hands over its Search, and the dynamic linker a filled-in struct.
    let (search, info) = unsafe { (&mut *data.cast::<Search<'_>>(), &*info) };
    if info.dlpi_name.is_null() || info.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: the linker's name of an object is null-terminated.
    let name = unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes();
    if !name.ends_with(search.soname) {
        return 0;
    }
    // SAFETY: the linker says where the program headers are and how many.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    if let Some(dynamic) = headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC) {
        let dynamic = info.dlpi_addr.wrapping_add(dynamic.p_vaddr) as *const DynamicEntry;
        // SAFETY: the dynamic section of a loaded object, which stays loaded while its handle is held.
        unsafe { collect(info.dlpi_addr, dynamic, search) };
    }
    1
}

/// Looks through the symbol table of an object.
///
/// # Safety
/// `dynamic` must be the dynamic section of an object loaded at `base`.
unsafe fn collect(base: u64, dynamic: *const DynamicEntry, search: &mut Search<'_>) {
    let (mut symbols, mut strings, mut hash) = (None, None, None);
    for at in 0.. {
        // SAFETY: the section ends with a zero tag, at which the loop ends.
        let entry = unsafe { &*dynamic.add(at) };
        // glibc has turned offsets into addresses, other linkers have not.
        let address = if entry.value < base { base.wrapping_add(entry.value) } else { entry.value };
        match entry.tag {
            0 => break,
            DT_SYMTAB => symbols = Some(address as *const libc::Elf64_Sym),
            DT_STRTAB => strings = Some(address as *const libc::c_char),
            DT_GNU_HASH => hash = Some(address as *const u32),
            _ => {}
        }
    }
    let (Some(symbols), Some(strings), Some(hash)) = (symbols, strings, hash) else { return };
    // SAFETY: the object's own hash table.
    let count = unsafe { symbol_count(hash) };
    for at in 0..count {
        // SAFETY: the hash table reaches up to the last symbol.
        let symbol = unsafe { &*symbols.add(at) };
        if symbol.st_shndx == 0 {
            continue;
        }
        // SAFETY: a symbol's name is an offset into the string table, whose entries are null-terminated.
        let name = unsafe { strings.add(symbol.st_name as usize) };
        for (prefix, found) in search.prefixes.iter().zip(&mut search.found) {
            // SAFETY: the comparison stops at the name's end.
            if unsafe { libc::strncmp(name, prefix.as_ptr().cast(), prefix.len()) } == 0 {
                // SAFETY: null-terminated, as above.
                found.push(unsafe { CStr::from_ptr(name) }.to_owned());
            }
        }
    }
}

/// The number of symbols of an object, which only its hash table tells: four words, a filter of 64-bit words, buckets
/// that name the first symbol of a chain, and chains whose last element is odd.
///
/// # Safety
/// `hash` must be the contents of a section `.gnu.hash`.
unsafe fn symbol_count(hash: *const u32) -> usize {
    // SAFETY: the caller's promise, for every word that the header says is there.
    unsafe {
        let (buckets, first, filter) =
            (hash.read() as usize, hash.add(1).read() as usize, hash.add(2).read() as usize);
        let bucket = hash.add(4 + 2 * filter);
        let chain = bucket.add(buckets);
        let last = (0..buckets).map(|at| bucket.add(at).read() as usize).max().unwrap_or(0);
        if last < first {
            return first;
        }
        let mut last = last;
        while chain.add(last - first).read() & 1 == 0 {
            last += 1;
        }
        last + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn libc_library() -> LoadedLibrary {
        LoadedLibrary::find(c"libc.so.6").expect("loaded in every process")
    }

    #[test]
    fn a_unique_beginning_finds_the_symbol() {
        let libc = libc_library();
        let [by_prefix, ambiguous, absent] =
            libc.symbols_by_prefix(["gnu_get_libc_ver", "pthread_mutex_", "_ZN3act"]);
        assert_eq!(by_prefix, libc.symbol(c"gnu_get_libc_version"));
        assert!(by_prefix.is_some());
        assert_eq!((ambiguous, absent), (None, None));
    }

    #[test]
    fn what_is_not_loaded_is_not_found() {
        assert!(LoadedLibrary::find(c"libtensorflow_cc.so.2").is_none());
        assert_eq!(libc_library().symbol(c"TF_Version"), None);
    }
}
