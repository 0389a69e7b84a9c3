//! The simulated machine of one invocation: on-chip buffers, segments of main memory, counters and the first fault.
//! Generated code sees it as an array of words; the offsets stand here.

use super::fault::RawFault;

/// Byte offsets of the machine's words.
pub(crate) mod word {
    // At 0: number of the faulting instruction in the text plus 1; 0 as long as nothing is wrong.
    /// Which of the instruction's checks failed.
    pub(crate) const FAULT_CHECK: i64 = 8;
    /// Pointer to (start, end, writable) of every segment.
    pub(crate) const SEGMENTS: i64 = 16;
    pub(crate) const SEGMENT_COUNT: i64 = 24;
    /// Pointer to the temporaries of instructions.
    pub(crate) const WORKSPACE: i64 = 32;
    /// Pointer to one execution count per native function.
    pub(crate) const COUNTS: i64 = 40;
    /// Pointers to the on-chip buffers.
    pub(crate) const BUFFERS: i64 = 48;
}

/// What buffers hold before a run: as s8 -91, as bf16 and f32 a small negative number, hardly ever a right answer.
const POISON: u8 = 0xa5;

/// A cache line; gives blocks their alignment.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line {
    bytes: [u8; 64],
}

/// Memory aligned to a cache line.
pub(crate) struct Block(Vec<Line>);

impl Block {
    pub(crate) fn poisoned(bytes: u64) -> Block {
        Block(vec![Line { bytes: [POISON; 64] }; bytes.div_ceil(64) as usize])
    }

    pub(crate) fn address(&mut self) -> u64 {
        self.0.as_mut_ptr() as u64
    }
}

/// A segment of main memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub(crate) start: u64,
    pub(crate) bytes: u64,
    pub(crate) writable: bool,
}

/// State of one invocation. Everything that its words point to is owned here or by the caller of the kernel.
pub(crate) struct Machine {
    words: Vec<u64>,
    counts: Vec<u64>,
    _segments: Vec<[u64; 3]>,
    /// The buffers, then the workspace.
    blocks: Vec<Block>,
}

impl Machine {
    /// `buffers` gives the bytes of every on-chip buffer, 0 for one that no instruction in the module touches;
    /// `contents` what they hold instead of poison.
    pub(crate) fn new(
        buffers: &[u64],
        workspace: u64,
        natives: usize,
        segments: &[Segment],
        contents: Option<&[Vec<u8>]>,
    ) -> Machine {
        let mut segments: Vec<[u64; 3]> =
            segments.iter().map(|s| [s.start, s.start + s.bytes, u64::from(s.writable)]).collect();
        let mut counts = vec![0u64; natives];
        let mut blocks: Vec<Block> =
            buffers.iter().chain([&workspace]).map(|&bytes| Block::poisoned(bytes)).collect();
        for (block, bytes) in blocks.iter_mut().zip(contents.unwrap_or_default()) {
            for (line, bytes) in block.0.iter_mut().zip(bytes.chunks(64)) {
                line.bytes[..bytes.len()].copy_from_slice(bytes);
            }
        }
        let mut addresses: Vec<u64> = blocks.iter_mut().map(Block::address).collect();
        let workspace = addresses.pop().unwrap_or(0);
        let mut words = vec![
            0,
            0,
            segments.as_mut_ptr() as u64,
            segments.len() as u64,
            workspace,
            counts.as_mut_ptr() as u64,
        ];
        words.extend(addresses);
        Machine { words, counts, _segments: segments, blocks }
    }

    pub(crate) fn pointer(&mut self) -> *mut u64 {
        self.words.as_mut_ptr()
    }

    /// The contents of the buffers that instructions touch.
    pub(crate) fn get_buffers(&self, contents: &mut [Vec<u8>]) {
        for (block, bytes) in self.blocks.iter().zip(contents) {
            for (line, bytes) in block.0.iter().zip(bytes.chunks_mut(64)) {
                bytes.copy_from_slice(&line.bytes[..bytes.len()]);
            }
        }
    }

    /// How often every native function was executed.
    pub(crate) fn counts(&self) -> &[u64] {
        &self.counts
    }

    pub(crate) fn fault(&self) -> Option<RawFault> {
        let site = (self.words[0] as usize).checked_sub(1)?;
        Some(RawFault { site, check: self.words[1] as usize })
    }
}
