//! Images and PDF files that a person attaches to a message.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use archon::types::{Content, Media, MediaError, MediaKind, Message, Timestamp, UserMessage};

use crate::{failure::Failure, text::visible_path};

/// The maximum size of an image in bytes; services refuse larger ones.
const MOST_IMAGE: u64 = 5 * 1_024 * 1_024;
/// The maximum size of all images and PDF files of a message in bytes; services refuse larger requests.
const MOST_TOGETHER: u64 = 22 * 1_024 * 1_024;
/// The maximum number of files of a message.
pub(crate) const MOST_FILES: usize = 20;

/// Returns a message with these images and PDF files, which the person named in the command.
///
/// # Errors
/// [`Failure`] for a file that cannot be attached. Nothing has been sent then.
pub(crate) fn message_with(task: String, files: &[PathBuf]) -> Result<Message, Failure> {
    let mut message = UserMessage::new(vec![Content::text(task)], Timestamp::default());
    if files.len() > MOST_FILES {
        let advice = format!("a message can have {MOST_FILES} files: leave some out");
        return Err(Failure::usage(format!("cannot attach {} files", files.len()), advice));
    }
    let mut size = Size::default();
    for file in files {
        let media = read_media(file).and_then(|media| size.add(&media).map(|()| media));
        let media = media.map_err(|why| {
            Failure::usage(
                format!("cannot attach {}: {why}", visible_path(file)),
                "give the path of an image or of a PDF file; text can be piped in: archon run TASK < FILE",
            )
        })?;
        message.attach(file.display().to_string(), media.into());
    }
    Ok(Message::User(message))
}

/// Reads an image or a PDF file. The error is the reason why it cannot be attached.
pub(crate) fn read_media(file: &Path) -> Result<Media, String> {
    let unreadable = |e: io::Error| format!("it cannot be read ({e})");
    // A pipe would block before it is refused.
    let about = fs::metadata(file).map_err(unreadable)?;
    if !about.is_file() {
        return Err("it is no file".to_owned());
    }
    let most = Media::MAX_BYTES as u64;
    if about.len() > most {
        return Err(too_large(about.len(), most));
    }
    let mut bytes = Vec::new();
    File::open(file).and_then(|file| file.take(most + 1).read_to_end(&mut bytes)).map_err(unreadable)?;
    let name = file.file_name().map(|name| name.to_string_lossy());
    let media = Media::new(&bytes, name.as_deref()).map_err(|e| match e {
        MediaError::Empty => "it is empty".to_owned(),
        MediaError::TooLarge { bytes } => too_large(bytes, most),
        _ => "it is neither PNG, JPEG, GIF or WebP nor PDF".to_owned(),
    })?;
    match media.kind() {
        MediaKind::Image if media.size() > MOST_IMAGE => Err(too_large(media.size(), MOST_IMAGE)),
        _ => Ok(media),
    }
}

fn too_large(bytes: u64, most: u64) -> String {
    format!("it has {bytes} bytes, and at most {most} are attached")
}

/// The size of all images and PDF files of a message together.
#[derive(Debug, Default)]
pub(crate) struct Size(u64);

impl Size {
    /// Adds the size of an image or a PDF file. The error is the reason why the file cannot be attached.
    pub(crate) fn add(&mut self, media: &Media) -> Result<(), String> {
        let sum = self.0 + media.size();
        if sum > MOST_TOGETHER {
            return Err(format!("the message has {sum} bytes with it, and at most {MOST_TOGETHER} are sent"));
        }
        self.0 = sum;
        Ok(())
    }
}
