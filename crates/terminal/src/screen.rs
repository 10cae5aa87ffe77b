//! Frames, and the trait of screens that write them.

use std::io;

use crate::row::{Place, Row, Size};

/// A frame: new rows for the scrollback, and the live area below them.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The rows that were committed since the last frame, such as the rows of [`Printed::take`](crate::Printed).
    /// Each is written once and never again.
    pub committed: &'a [Row],
    /// The rows of the live area, which the next frame replaces.
    pub live: &'a [Row],
    /// The place of the draft's caret in `live`; `None` if nothing can be typed.
    pub caret: Option<Place>,
    /// True if the terminal's own cursor stands at the caret; input methods for Chinese, Japanese and Korean need
    /// that. If false, the caret is drawn, and the cursor rests at the beginning of the live area, where a resize
    /// cannot separate the two. So set it to true only while a person types.
    pub caret_is_real: bool,
    /// The size of the terminal, read just before the frame.
    pub size: Size,
}

/// Writes frames to a terminal.
///
/// ```
/// use std::io;
///
/// use archon_terminal::{Frame, Screen};
///
/// /// Prints rows once they are committed, without styles.
/// struct Plain;
///
/// impl Screen for Plain {
///     fn frame(&mut self, frame: &Frame<'_>) -> io::Result<()> {
///         for row in frame.committed {
///             println!("{}", row.text());
///         }
///         Ok(())
///     }
///
///     fn leave(&mut self) -> io::Result<()> {
///         Ok(())
///     }
/// }
/// ```
pub trait Screen {
    /// Writes a frame: the committed rows once into the scrollback, and the live rows in place of the former ones.
    ///
    /// # Errors
    ///
    /// Writing to the output failed; the terminal may be gone.
    fn frame(&mut self, frame: &Frame<'_>) -> io::Result<()>;

    /// Erases the live area and ends all modes of the terminal that the screen began. The next frame begins them
    /// again. A second call writes nothing.
    ///
    /// # Errors
    ///
    /// Writing to the output failed; the terminal may be gone.
    fn leave(&mut self) -> io::Result<()>;
}
