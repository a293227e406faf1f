//! `Send` and `Sync` where futures can move between threads.

/// Platforms on which futures may move between threads.
#[cfg(not(all(target_arch = "wasm32", target_os = "unknown")))]
mod platform {
    use core::{future::Future, pin::Pin};

    /// [`Send`], except in browsers.
    ///
    /// In browsers (`wasm32-unknown-unknown`), promises and other values of JavaScript belong to
    /// the thread that created them, and so do futures that wait for them. There every type has
    /// this trait.
    pub trait MaybeSend: Send {}

    impl<T: ?Sized + Send> MaybeSend for T {}

    /// [`Sync`], except in browsers; see [`MaybeSend`].
    pub trait MaybeSync: Sync {}

    impl<T: ?Sized + Sync> MaybeSync for T {}

    /// A boxed future that is [`Send`], except in browsers; see [`MaybeSend`].
    pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
}

/// Browsers.
#[cfg(all(target_arch = "wasm32", target_os = "unknown"))]
mod platform {
    use core::{future::Future, pin::Pin};

    /// Every type: in browsers, futures and what they own stay on one thread.
    pub trait MaybeSend {}

    impl<T: ?Sized> MaybeSend for T {}

    /// Every type; see [`MaybeSend`].
    pub trait MaybeSync {}

    impl<T: ?Sized> MaybeSync for T {}

    /// A boxed future; see [`MaybeSend`].
    pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;
}

pub use platform::{BoxFuture, MaybeSend, MaybeSync};
