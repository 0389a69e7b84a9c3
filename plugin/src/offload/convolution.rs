//! A convolution's attributes, read from its instruction, or why it is no product that a region could hold.

use act_hlo::proto::convert::{Inexpressible, Why};
use act_hlo::proto::instruction::field;
use act_hlo::proto::{Instruction, Message, ProtoError};

/// Numbers of an array's dimensions by the part they play.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Roles {
    /// Batch of images and results, output features of the kernel.
    pub(crate) batch: usize,
    /// Features of images and results, input features of the kernel.
    pub(crate) feature: usize,
    pub(crate) spatial: Vec<usize>,
}

/// The window along one spatial dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Along {
    pub(crate) size: i64,
    pub(crate) stride: i64,
    /// Elements before and after the image; negative ones cut it.
    pub(crate) low: i64,
    pub(crate) high: i64,
    /// Distance of the window's elements.
    pub(crate) dilation: i64,
    /// Distance that the image's elements are spread to.
    pub(crate) spread: i64,
    pub(crate) reversed: bool,
}

/// What a convolution computes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Convolution {
    pub(crate) image: Roles,
    pub(crate) kernel: Roles,
    pub(crate) result: Roles,
    pub(crate) window: Vec<Along>,
    /// Features are convolved in this many groups, each by itself.
    pub(crate) groups: u64,
}

impl Along {
    /// The window of a convolution or of another operator that has one, dimension by dimension.
    ///
    /// # Errors
    /// Malformed bytes.
    pub(crate) fn read(instruction: &Instruction) -> Result<Vec<Along>, ProtoError> {
        let window = instruction.message().message(field::WINDOW, "Window")?.unwrap_or_default();
        window
            .all_bytes(1)
            .map(|bytes| {
                let m = Message::parse(bytes, "WindowDimension")?;
                Ok(Along {
                    size: m.int(1),
                    stride: m.int(2).max(1),
                    low: m.int(3),
                    high: m.int(4),
                    dilation: m.int(5).max(1),
                    spread: m.int(6).max(1),
                    reversed: m.flag(7),
                })
            })
            .collect()
    }
}

const DIMENSIONS: &str = "ConvolutionDimensionNumbers";

/// Numbers of HloInstructionProto's fields for groups (xla/service/hlo.proto).
const FEATURE_GROUP_COUNT: u32 = 50;
const BATCH_GROUP_COUNT: u32 = 61;

impl Convolution {
    /// # Errors
    /// Not a convolution that is a product of windows and kernel, group by group.
    pub(crate) fn read(instruction: &Instruction) -> Result<Convolution, Inexpressible> {
        parts(instruction).map_err(|why| Inexpressible { opcode: instruction.opcode().to_owned(), why })
    }
}

fn parts(instruction: &Instruction) -> Result<Convolution, Why> {
    let message = instruction.message();
    if message.int(BATCH_GROUP_COUNT) > 1 {
        return Err(Why::Attribute("batch_group_count".to_owned()));
    }
    let groups = u64::try_from(message.int(FEATURE_GROUP_COUNT).max(1))
        .map_err(|_| Why::Attribute("feature_group_count".to_owned()))?;
    let numbers = message.message(field::CONVOLUTION_DIMENSIONS, DIMENSIONS)?.unwrap_or_default();
    let roles = |batch: u32, feature: u32, spatial: u32| -> Result<Roles, Why> {
        let index = |value: i64| usize::try_from(value).map_err(|_| Why::Attribute("dim_labels".to_owned()));
        let spatial = numbers.ints(spatial, DIMENSIONS)?;
        Ok(Roles {
            batch: index(numbers.int(batch))?,
            feature: index(numbers.int(feature))?,
            spatial: spatial.into_iter().map(index).collect::<Result<_, _>>()?,
        })
    };
    let (image, kernel, result) = (roles(7, 8, 11)?, roles(4, 3, 6)?, roles(9, 10, 12)?);
    let window = Along::read(instruction)?;
    if [&image, &kernel, &result].iter().any(|r| r.spatial.len() != window.len()) {
        return Err(Why::Attribute("dim_labels".to_owned()));
    }
    Ok(Convolution { image, kernel, result, window, groups })
}
