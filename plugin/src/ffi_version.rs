//! FFI handlers of a framework that is newer than the XLA library. XLA refuses a handler that was built against a later
//! minor version of its FFI, though minor versions only add functions to the table that XLA passes to it. So every
//! handler is registered behind a function of ours, which says the library's version where the handler's is later.
//!
//! It knows nothing of what handlers do. One that calls a function which the library's table lacks is not helped; those of
//! jaxlib call only what has been there from the beginning.

use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use pjrt_abi::ffi::{CallFrame, EXTENSION_METADATA, FfiError, Handler, MetadataExtension};

use crate::object_table::lock;

const ROWS: usize = 32;
const COLUMNS: usize = 16;

/// The handlers, as addresses, by the function of ours that each stands behind; 0 for none.
static HANDLERS: [[AtomicUsize; COLUMNS]; ROWS] = [const { [const { AtomicUsize::new(0) }; COLUMNS] }; ROWS];

/// How many functions have a handler.
static TAKEN: Mutex<usize> = Mutex::new(0);

/// C functions carry no data: each handler needs one of its own.
static FUNCTIONS: [[Handler; COLUMNS]; ROWS] = [
    row::<0>(),
    row::<1>(),
    row::<2>(),
    row::<3>(),
    row::<4>(),
    row::<5>(),
    row::<6>(),
    row::<7>(),
    row::<8>(),
    row::<9>(),
    row::<10>(),
    row::<11>(),
    row::<12>(),
    row::<13>(),
    row::<14>(),
    row::<15>(),
    row::<16>(),
    row::<17>(),
    row::<18>(),
    row::<19>(),
    row::<20>(),
    row::<21>(),
    row::<22>(),
    row::<23>(),
    row::<24>(),
    row::<25>(),
    row::<26>(),
    row::<27>(),
    row::<28>(),
    row::<29>(),
    row::<30>(),
    row::<31>(),
];

const fn row<const ROW: usize>() -> [Handler; COLUMNS] {
    [
        enter::<ROW, 0>,
        enter::<ROW, 1>,
        enter::<ROW, 2>,
        enter::<ROW, 3>,
        enter::<ROW, 4>,
        enter::<ROW, 5>,
        enter::<ROW, 6>,
        enter::<ROW, 7>,
        enter::<ROW, 8>,
        enter::<ROW, 9>,
        enter::<ROW, 10>,
        enter::<ROW, 11>,
        enter::<ROW, 12>,
        enter::<ROW, 13>,
        enter::<ROW, 14>,
        enter::<ROW, 15>,
    ]
}

/// The function to register in a handler's place: the handler itself once all of ours are taken.
pub(crate) fn accepted(handler: Handler) -> Handler {
    let mut taken = lock(&TAKEN);
    let (row, column) = (*taken / COLUMNS, *taken % COLUMNS);
    let Some(function) = FUNCTIONS.get(row).map(|functions| functions[column]) else { return handler };
    HANDLERS[row][column].store(handler as usize, Ordering::Release);
    *taken += 1;
    function
}

/// # Safety
/// XLA calls it with a call frame, once it is registered.
unsafe extern "C" fn enter<const ROW: usize, const COLUMN: usize>(frame: *mut CallFrame) -> *mut FfiError {
    let address = HANDLERS[ROW][COLUMN].load(Ordering::Acquire);
    // SAFETY: `accepted` stores a handler before it gives this function away.
    let handler = unsafe { std::mem::transmute::<*const (), Handler>(ptr::with_exposed_provenance(address)) };
    // SAFETY: XLA's frame, for this handler.
    let error = unsafe { handler(frame) };
    // SAFETY: as above.
    unsafe { lower_version(&*frame) };
    error
}

/// Where the call was a query for metadata, lowers the answer's version to that of XLA.
///
/// # Safety
/// `frame` must be XLA's.
unsafe fn lower_version(frame: &CallFrame) {
    let mut next = frame.extension_start;
    while !next.is_null() {
        // SAFETY: a node of XLA's chain.
        let node = unsafe { &*next };
        if node.r#type == EXTENSION_METADATA {
            // SAFETY: the node's type says that it is one of these; XLA's frame carries its function table.
            let (metadata, table) =
                unsafe { (&mut *(*next.cast::<MetadataExtension>()).metadata, &*frame.api) };
            let (given, known) = (&mut metadata.api_version, &table.api_version);
            if given.major_version == known.major_version {
                given.minor_version = given.minor_version.min(known.minor_version);
            }
        }
        next = node.next;
    }
}
