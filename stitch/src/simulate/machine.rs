//! The simulated machine of one thread: on-chip buffers and pointers to the segments of main memory. Generated code sees
//! it as an array of words; the offsets stand here.

use super::layout::BufferLayout;

/// Byte offsets of the machine's words.
pub(crate) mod word {
    /// Pointer to what the runtime knows of the invocation.
    pub(crate) const INVOCATION: usize = 0;
    /// Pointer to the temporaries of instructions.
    pub(crate) const WORKSPACE: i64 = 8;
    /// The same pointer, to load by what was packed: see `native::Workspace`.
    pub(crate) const PACKED: i64 = 16;
    /// Words before the pointers to the segments, which those to the on-chip buffers follow.
    pub(crate) const BEFORE: usize = 3;
    pub(crate) const POINTERS: i64 = 8 * BEFORE as i64;
}

/// What buffers hold before a run: as s8 -91, as bf16 and f32 a small negative number, hardly ever a right answer.
const POISON: u8 = 0xa5;

/// A cache line; gives blocks their alignment.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line {
    bytes: [u8; 64],
}

/// Aligned memory.
pub(crate) struct Block(Vec<Line>);

impl Block {
    pub(crate) fn poisoned(bytes: u64) -> Block {
        Block(vec![Line { bytes: [POISON; 64] }; bytes.div_ceil(64) as usize])
    }

    fn poison(&mut self) {
        self.0.fill(Line { bytes: [POISON; 64] });
    }

    pub(crate) fn pointer(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }
}

/// Buffers and workspace of one thread.
pub(crate) struct Machine {
    words: Vec<u64>,
    blocks: Vec<Block>,
    _workspace: Block,
}

impl Machine {
    /// A machine with poisoned buffers whose segments are still to be set.
    pub(crate) fn new(layouts: &[BufferLayout], workspace: u64, segments: usize) -> Machine {
        let mut blocks: Vec<Block> = layouts.iter().map(|layout| Block::poisoned(layout.bytes)).collect();
        let mut workspace = Block::poisoned(workspace);
        let mut words = vec![0, workspace.pointer() as u64, workspace.pointer() as u64];
        words.resize(word::BEFORE + segments, 0);
        words.extend(blocks.iter_mut().map(|block| block.pointer() as u64));
        Machine { words, blocks, _workspace: workspace }
    }

    /// Buffers as they are before a run: poisoned, or full of their initial value.
    pub(crate) fn reset(&mut self, layouts: &[BufferLayout]) {
        for (block, layout) in self.blocks.iter_mut().zip(layouts) {
            match &layout.init {
                None => block.poison(),
                Some(value) => {
                    block
                        .bytes_mut()
                        .chunks_mut(value.len().max(1))
                        .for_each(|e| e.copy_from_slice(&value[..e.len()]));
                }
            }
        }
    }

    /// Sets what belongs to an invocation.
    pub(crate) fn attach(&mut self, invocation: u64, segments: &[u64]) {
        self.words[word::INVOCATION] = invocation;
        self.words[word::BEFORE..][..segments.len()].copy_from_slice(segments);
    }

    pub(crate) fn pointer(&mut self) -> *mut u64 {
        self.words.as_mut_ptr()
    }

    /// Start of a buffer.
    pub(crate) fn buffer(&mut self, k: usize) -> *mut u8 {
        self.blocks[k].pointer()
    }

    /// Fills the used boxes from dense whole buffers.
    pub(crate) fn set_buffers(&mut self, layouts: &[BufferLayout], contents: &[Vec<u8>]) {
        for ((block, layout), whole) in self.blocks.iter_mut().zip(layouts).zip(contents) {
            let own = block.bytes_mut();
            layout.for_each_row(|at, dense, bytes| {
                own[at..at + bytes].copy_from_slice(&whole[dense..dense + bytes]);
            });
        }
    }

    /// Writes the used boxes back into dense whole buffers.
    pub(crate) fn get_buffers(&mut self, layouts: &[BufferLayout], contents: &mut [Vec<u8>]) {
        for ((block, layout), whole) in self.blocks.iter_mut().zip(layouts).zip(contents) {
            let own = block.bytes_mut();
            layout.for_each_row(|at, dense, bytes| {
                whole[dense..dense + bytes].copy_from_slice(&own[at..at + bytes]);
            });
        }
    }
}

impl Block {
    fn bytes_mut(&mut self) -> &mut [u8] {
        let (pointer, len) = (self.pointer(), 64 * self.0.len());
        // SAFETY: the lines are `len` initialised bytes without padding, borrowed for the result's lifetime.
        unsafe { std::slice::from_raw_parts_mut(pointer, len) }
    }
}
