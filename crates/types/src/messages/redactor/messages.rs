//! Redacts messages and results, in every field that may have text from outside.

use std::sync::Arc;

use crate::{
    Json,
    messages::{AssistantMessage, Content, ToolCall, ToolResult},
};

use super::forms::Forms;

impl Forms {
    pub(crate) fn clean_text(&self, text: &mut String) {
        if let Some(clean) = self.cleaned(text) {
            *text = clean;
        }
    }

    pub(crate) fn clean_json(&self, value: &mut Json) {
        if self.is_empty() {
            return;
        }
        match value {
            Json::String(text) => self.clean_text(text),
            Json::Array(items) => items.iter_mut().for_each(|item| self.clean_json(item)),
            Json::Object(entries) => self.clean_object(entries),
            Json::Number(number) => {
                if let Some(clean) = self.cleaned(&number.to_string()) {
                    *value = Json::String(clean);
                }
            }
            Json::Null | Json::Bool(_) => {}
        }
    }

    fn clean_object(&self, entries: &mut serde_json::Map<String, Json>) {
        entries.values_mut().for_each(|value| self.clean_json(value));
        if entries.keys().all(|key| self.cleaned(key).is_none()) {
            return;
        }
        for (key, value) in std::mem::take(entries) {
            let mut key = self.cleaned(&key).unwrap_or(key);
            // Keys that became equal are made distinct, so that no entry is lost.
            while entries.contains_key(&key) {
                key.push('*');
            }
            entries.insert(key, value);
        }
    }

    pub(crate) fn clean_answer(&self, answer: &mut AssistantMessage) {
        self.clean_content(&mut answer.content);
        self.clean_optional(&mut answer.error_message);
    }

    pub(crate) fn clean_result(&self, result: &mut ToolResult) {
        if self.is_empty() {
            return;
        }
        self.clean_content(&mut result.content);
        self.clean_optional(&mut result.error_message);
        self.clean_object(&mut result.metadata);
        if let Some(file) = &mut result.data_file {
            self.clean_text(&mut file.summary);
        }
    }

    pub(crate) fn clean_content(&self, content: &mut [Content]) {
        if self.is_empty() {
            return;
        }
        for block in content {
            match block {
                Content::Text { text } => self.clean_text(text),
                Content::Thinking { thinking, signature } => {
                    self.clean_text(thinking);
                    self.clean_optional(signature);
                }
                Content::ToolCall(call) => self.clean_call(Arc::make_mut(call)),
                Content::Media(media) => self.clean_optional(media.name_mut()),
                Content::Image { .. } => {}
            }
        }
    }

    pub(crate) fn clean_call(&self, call: &mut ToolCall) {
        if let Some(clean) = self.cleaned(call.id.as_str()) {
            call.id = clean.into();
        }
        self.clean_text(&mut call.name);
        self.clean_json(&mut call.arguments);
        if let Some(malformed) = &mut call.malformed {
            self.clean_text(&mut malformed.text);
            self.clean_text(&mut malformed.error);
        }
    }

    pub(crate) fn clean_optional(&self, text: &mut Option<String>) {
        text.iter_mut().for_each(|text| self.clean_text(text));
    }
}
