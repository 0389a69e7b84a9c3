//! Messages to the user: `tracing` events, filtered by `ACT_LOG`, written to stderr.

use std::sync::Mutex;

use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry, fmt, reload};

use crate::object_table::lock;

/// What is shown unless asked otherwise.
pub(crate) const DEFAULT_FILTER: &str = "warn";

/// How to change the filter once messages flow.
static FILTER: Mutex<Option<reload::Handle<EnvFilter, Registry>>> = Mutex::new(None);

/// Sets the filter, starting the flow of messages if need be.
///
/// # Errors
/// The filter's text is not one; the message says what is wrong with it.
pub(crate) fn set_filter(text: &str) -> Result<(), String> {
    let filter = EnvFilter::try_new(text).map_err(|error| error.to_string())?;
    let mut handle = lock(&FILTER);
    if let Some(handle) = &*handle {
        return handle.reload(filter).map_err(|error| error.to_string());
    }
    let (layer, reload_handle) = reload::Layer::new(filter);
    let to_stderr = fmt::layer().with_writer(std::io::stderr).with_ansi(false).without_time();
    // Inside a Rust program that already collects events (a test), those go where it says.
    if tracing_subscriber::registry().with(layer).with(to_stderr).try_init().is_ok() {
        *handle = Some(reload_handle);
    }
    Ok(())
}
