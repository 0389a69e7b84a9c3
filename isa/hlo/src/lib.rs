//! HLO as data: element types, shapes, literals, operators and graphs, and what can be computed from
//! them alone. Knows no accelerator.

pub mod canonical;
pub mod compare;
pub mod elem;
pub mod eval;
pub mod graph;
pub mod infer;
pub mod literal;
pub mod op;
pub mod proto;
pub mod random;
pub mod shape;
pub mod text;

pub use canonical::canonical_bytes;
pub use elem::ElemType;
pub use eval::{EvalError, binary_f32, binary_f64, eval, eval_op, unary_f32, unary_f64};
pub use graph::{Graph, GraphError, Node, NodeId, SourceLoc};
pub use infer::{ShapeError, infer_shape};
pub use literal::Literal;
pub use op::{Binary, Direction, DotDims, Op, OpKind, Unary};
pub use shape::{Layout, Shape};
pub use text::{ParseError, TextModule, parse_graph, parse_module, print_graph};
