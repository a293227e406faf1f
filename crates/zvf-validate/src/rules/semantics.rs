//! L4: geometry.

use crate::rule::rules;

rules! { Semantics;
    /// Errors before leave nothing that geometry could be checked on.
    NOT_RUN = "ZV-L4-000", Error, "semantics were not checked",
        Advice("mend what L1 to L3 found, and validate again");
}
