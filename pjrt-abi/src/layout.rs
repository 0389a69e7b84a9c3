//! How the C structs of this crate are declared, so that their layout is also there as data that a test
//! can hold against a C compiler's. It knows nothing of the structs themselves.

/// A `#[repr(C)]` mirror of a C struct.
///
/// # Safety
/// The type must be `#[repr(C)]`, and a value of all zero bytes must be valid for it. `FIELDS` must list
/// the fields in declaration order.
pub unsafe trait CStruct: Copy {
    /// The struct's name in the C header.
    const C_NAME: &'static str;
    /// Name, offset and size in bytes of each field, in declaration order.
    const FIELDS: &'static [(&'static str, usize, usize)];

    /// The header's `STRUCT_SIZE`: end of the last field, without tail padding.
    const STRUCT_SIZE: usize = {
        let (_, offset, size) = Self::FIELDS[Self::FIELDS.len() - 1];
        offset + size
    };

    /// A value of all zero bytes.
    fn zeroed() -> Self {
        // SAFETY: the trait's contract says that all zero bytes are a valid value.
        unsafe { std::mem::zeroed() }
    }
}

/// The layout of one [`CStruct`] as data.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// The struct's name in the C header.
    pub c_name: &'static str,
    /// `sizeof` in bytes, tail padding included; `None` where only the first fields are declared here.
    pub size: Option<usize>,
    /// Name, offset and size in bytes of each field.
    pub fields: &'static [(&'static str, usize, usize)],
}

impl Layout {
    /// The layout of `T`.
    pub const fn of<T: CStruct>() -> Layout {
        Layout { c_name: T::C_NAME, size: Some(size_of::<T>()), fields: T::FIELDS }
    }

    /// The layout of `T`, of whose C counterpart only the first fields are declared here.
    pub const fn of_prefix<T: CStruct>() -> Layout {
        Layout { c_name: T::C_NAME, size: None, fields: T::FIELDS }
    }

    /// A field's name in C. The one union is unnamed there and is reached through its first member.
    pub fn c_field(&self, field: &'static str) -> &'static str {
        match (self.c_name, field) {
            ("PJRT_NamedValue", "value") => "string_value",
            _ => field.trim_start_matches("r#"),
        }
    }
}

/// Declares a `#[repr(C)]` struct together with its [`CStruct`] implementation.
///
/// `sized` adds a constructor that sets the field `struct_size`; `for SLOT` also says which function the struct
/// is the argument of.
macro_rules! c_struct {
    ($(#[$meta:meta])* $name:ident = $c_name:literal for $slot:ident { $($body:tt)* }) => {
        $crate::layout::c_struct! { $(#[$meta])* sized $name = $c_name { $($body)* } }

        // SAFETY: the struct is the argument struct of that slot, and starts with its size.
        unsafe impl $crate::args::Args for $name {
            const SLOT: $crate::Slot = $crate::Slot::$slot;
        }
    };
    ($(#[$meta:meta])* sized $name:ident = $c_name:literal { $($body:tt)* }) => {
        $crate::layout::c_struct! { $(#[$meta])* $name = $c_name { $($body)* } }

        impl $name {
            /// All fields zero, the size set.
            #[allow(clippy::new_without_default, reason = "a default would hide that the size is set")]
            pub fn new() -> Self {
                let mut args = <Self as $crate::layout::CStruct>::zeroed();
                args.struct_size = <Self as $crate::layout::CStruct>::STRUCT_SIZE;
                args
            }
        }
    };
    ($(#[$meta:meta])* $name:ident = $c_name:literal { $($(#[$field_meta:meta])* $field:ident : $type:ty),* $(,)? }) => {
        $(#[$meta])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: $type,)*
        }

        // SAFETY: declared `repr(C)` just above; every field type used in this crate (integers, bool,
        // raw pointers, optional function pointers, arrays and structs of those) may be all zero.
        unsafe impl $crate::layout::CStruct for $name {
            const C_NAME: &'static str = $c_name;
            const FIELDS: &'static [(&'static str, usize, usize)] = &[
                $((stringify!($field), std::mem::offset_of!($name, $field), size_of::<$type>())),*
            ];
        }
    };
}
pub(crate) use c_struct;
