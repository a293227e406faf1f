//! A callback around every change of a store, for crash tests.

use core::fmt;
use std::sync::Arc;

use zvf_model::key::Key;

pub(crate) type HookFn = dyn Fn(&str, &Key) + Send + Sync;

/// The callback of [`OpenOptions::write_hook`](crate::OpenOptions::write_hook), if one is set.
#[derive(Clone, Default)]
pub(crate) struct WriteHook(Option<Arc<HookFn>>);

impl WriteHook {
    pub(crate) fn new(hook: Arc<HookFn>) -> Self {
        Self(Some(hook))
    }

    pub(crate) fn call(&self, operation: &str, key: &Key) {
        if let Some(hook) = &self.0 {
            hook(operation, key);
        }
    }
}

impl fmt::Debug for WriteHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WriteHook").field(&self.0.is_some()).finish()
    }
}
