//! Lets this library, and the command `act`, load on every system with glibc 2.28, although they are linked where glibc
//! is newer.
//!
//! A function that glibc has changed since is there in its old version too, and that is asked for here: the linker
//! takes these hidden definitions for what LLVM, libstdc++ and Rust's own library call, and each jumps to the old
//! version. What 2.28 lacks is written in terms of what it has. Only symbols of the C library are here.

use std::arch::global_asm;

/// Defines functions that jump to their namesakes of an older version of glibc.
macro_rules! older {
    ($($version:literal: $($name:literal)*;)*) => { $($(
        global_asm!(
            concat!(".symver act_glibc_", $name, ", ", $name, "@GLIBC_", $version),
            concat!(".pushsection .text.", $name, ", \"ax\", @progbits"),
            concat!(".globl ", $name),
            concat!(".hidden ", $name),
            concat!(".type ", $name, ", @function"),
            concat!($name, ":"),
            concat!("jmp qword ptr [rip + act_glibc_", $name, "@GOTPCREL]"),
            concat!(".size ", $name, ", . - ", $name),
            ".popsection",
        );
    )*)* };
}

/// Defines functions in assembly.
macro_rules! written {
    ($($name:literal: $($line:literal)* $(, $operand:ident = sym $function:path)?;)*) => { $(
        global_asm!(
            concat!(".pushsection .text.", $name, ", \"ax\", @progbits"),
            concat!(".globl ", $name),
            concat!(".hidden ", $name),
            concat!(".type ", $name, ", @function"),
            concat!($name, ":"),
            $($line,)*
            concat!(".size ", $name, ", . - ", $name),
            ".popsection",
            $($operand = sym $function,)?
        );
    )* };
}

// With 2.34 libpthread and libdl became parts of libc, and everything in them got a new version.
older! {
    "2.2.5": "dladdr" "dlclose" "dlerror" "dlopen" "dlsym"
        "pthread_attr_getguardsize" "pthread_attr_getstack" "pthread_attr_setstacksize" "pthread_create"
        "pthread_detach" "pthread_getattr_np" "pthread_join" "pthread_key_create" "pthread_key_delete" "pthread_once"
        "pthread_rwlock_rdlock" "pthread_rwlock_unlock" "pthread_rwlock_wrlock" "pthread_setspecific"
        "pthread_sigmask"
        // What a program begins with; the older one runs no initialisers itself, and Rust needs none.
        "__libc_start_main"
        // The older ones set errno by another way; their results are the same.
        "exp" "log" "log2" "pow";
    "2.12": "pthread_setname_np";
}

// Until 2.33 these were inline, and called functions that begin with the version of the struct they fill in: 1 for stat,
// 0 for mknod, which takes the device by reference.
written! {
    "stat": "mov rdx, rsi" "mov rsi, rdi" "mov edi, 1" "jmp qword ptr [rip + __xstat@GOTPCREL]";
    "stat64": "mov rdx, rsi" "mov rsi, rdi" "mov edi, 1" "jmp qword ptr [rip + __xstat64@GOTPCREL]";
    "lstat": "mov rdx, rsi" "mov rsi, rdi" "mov edi, 1" "jmp qword ptr [rip + __lxstat@GOTPCREL]";
    "lstat64": "mov rdx, rsi" "mov rsi, rdi" "mov edi, 1" "jmp qword ptr [rip + __lxstat64@GOTPCREL]";
    "fstat": "mov rdx, rsi" "mov esi, edi" "mov edi, 1" "jmp qword ptr [rip + __fxstat@GOTPCREL]";
    "fstat64": "mov rdx, rsi" "mov esi, edi" "mov edi, 1" "jmp qword ptr [rip + __fxstat64@GOTPCREL]";
    "fstatat64":
        "mov r8d, ecx" "mov rcx, rdx" "mov rdx, rsi" "mov esi, edi" "mov edi, 1"
        "jmp qword ptr [rip + __fxstatat64@GOTPCREL]";
    "mknod":
        "push rdx" "mov rcx, rsp" "mov edx, esi" "mov rsi, rdi" "xor edi, edi"
        "call qword ptr [rip + __xmknod@GOTPCREL]" "add rsp, 8" "ret";
    "gettid": "jmp {id}", id = sym thread_id;
    "arc4random": "jmp {random}", random = sym random;
    "mallinfo2": "jmp {info}", info = sym allocator_statistics;
}

// Since 2.32 this says whether the process has one thread, by which libstdc++ saves atomic operations. 0: it may have
// more.
global_asm!(
    ".pushsection .rodata.__libc_single_threaded, \"a\", @progbits",
    ".globl __libc_single_threaded",
    ".hidden __libc_single_threaded",
    ".type __libc_single_threaded, @object",
    "__libc_single_threaded: .byte 0",
    ".size __libc_single_threaded, 1",
    ".popsection",
);

// Rust's own library asks whether this is there, since 2.29, and has another way where it is not: address 0.
global_asm!(
    ".globl posix_spawn_file_actions_addchdir_np",
    ".hidden posix_spawn_file_actions_addchdir_np",
    ".set posix_spawn_file_actions_addchdir_np, 0",
);

/// `gettid`, since 2.30.
extern "C" fn thread_id() -> libc::pid_t {
    // SAFETY: the call has no arguments and cannot fail.
    let id = unsafe { libc::syscall(libc::SYS_gettid) };
    // Ids are of this type; the call answers in a wider one.
    libc::pid_t::try_from(id).unwrap_or(0)
}

/// `arc4random`, since 2.36, from the same source.
extern "C" fn random() -> u32 {
    let mut bytes = [0; 4];
    // SAFETY: writes at most four bytes. The kernel gives up to 256 whole, once it has started.
    while unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) } != 4 {}
    u32::from_ne_bytes(bytes)
}

/// `mallinfo2`, since 2.33: the counts of `mallinfo`, which are as wide as they were then.
extern "C" fn allocator_statistics() -> libc::mallinfo2 {
    // SAFETY: it reads the allocator's own counts.
    let narrow = unsafe { libc::mallinfo() };
    // Counts above 2 GiB wrap around; as bits they are kept.
    let wide = |count: libc::c_int| count.cast_unsigned() as usize;
    libc::mallinfo2 {
        arena: wide(narrow.arena),
        ordblks: wide(narrow.ordblks),
        smblks: wide(narrow.smblks),
        hblks: wide(narrow.hblks),
        hblkhd: wide(narrow.hblkhd),
        usmblks: wide(narrow.usmblks),
        fsmblks: wide(narrow.fsmblks),
        uordblks: wide(narrow.uordblks),
        fordblks: wide(narrow.fordblks),
        keepcost: wide(narrow.keepcost),
    }
}
