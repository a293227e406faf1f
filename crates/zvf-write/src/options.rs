//! Setters that the options of several operations share.

/// Defines setters of a struct of options, by the names of its fields.
#[macro_export]
macro_rules! option_setters {
    ($($name:ident),+) => {
        $($crate::option_setters! { @setter $name })+
    };
    (@setter overwrite) => {
        /// Sets whether existing contents are replaced.
        #[must_use]
        pub fn overwrite(mut self, overwrite: bool) -> Self {
            self.overwrite = overwrite;
            self
        }
    };
    (@setter progress) => {
        /// Sets the callback for progress.
        #[must_use]
        pub fn progress(mut self, progress: zvf_dataset::Progress) -> Self {
            self.progress = Some(progress);
            self
        }
    };
    (@setter runner) => {
        /// Sets the runner of tasks in other processes.
        #[must_use]
        pub fn runner(mut self, runner: std::sync::Arc<dyn $crate::task_runner::TaskRunner>) -> Self {
            self.runner = Some(runner);
            self
        }
    };
    (@setter node_copy) => {
        /// Sets whether the root gets a copy of the nodes.
        #[must_use]
        pub fn node_copy(mut self, node_copy: bool) -> Self {
            self.node_copy = node_copy;
            self
        }
    };
    (@setter seal) => {
        /// Sets whether the store is sealed.
        #[must_use]
        pub fn seal(mut self, seal: bool) -> Self {
            self.seal = seal;
            self
        }
    };
    (@setter open) => {
        /// Sets the options that stores are opened with.
        #[must_use]
        pub fn open(mut self, open: ::zvf_store::OpenOptions) -> Self {
            self.open = open;
            self
        }
    };
}
