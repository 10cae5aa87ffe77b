//! Streams as services send them, with the message that each means.

/// Name, body of the response, and the message in a line.
pub(crate) const FIXTURES: &[(&str, &str, &str)] = &[
    (
        "text, comments, pings, usage without choices",
        ": connected\n\n\
         data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"model\":\"m-2\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}\n\n\
         : ping\n\n\
         event: ping\ndata: {}\n\n\
         data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Grüße\"},\"logprobs\":null,\"finish_reason\":null}],\"usage\":null}\n\n\
         data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\", \\\"Welt\\\" 🌍\\n\"}}]}\n\n\
         data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n\
         data: {\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":4,\"total_tokens\":14,\"prompt_tokens_details\":{\"cached_tokens\":3}}}\n\n\
         data: [DONE]\n\n",
        "stop m-2 in 7 out 4 cached 3: text \"Grüße, \\\"Welt\\\" 🌍\\n\"",
    ),
    (
        "data over several lines, no space after the colon",
        "data:{\"choices\":\ndata:[{\"delta\":\ndata: {\"content\":\"a\"}}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"content\":\"b\"},\"finish_reason\":\"stop\"}]}\n\n",
        "stop m in 0 out 0 cached 0: text \"ab\"",
    ),
    (
        "parallel calls, interleaved",
        "data: {\"choices\":[{\"delta\":{\"content\":\"I look.\"}}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"type\":\"function\",\"function\":{\"name\":\"files__read\",\"arguments\":\"\"}}]}}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":1,\"id\":\"b\",\"type\":\"function\",\"function\":{\"name\":\"add\",\"arguments\":\"{\"}}]}}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{\\\"path\\\":\"}},{\"index\":1,\"function\":{\"arguments\":\"\\\"b\\\":2,\"}}]}}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":1,\"function\":{\"arguments\":\"\\\"a\\\":1}\"}}]}}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"\\\"ä\\\"}\"}}]}}]}\n\n\
         data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n\
         data: [DONE]\n\n",
        "tools m in 0 out 0 cached 0: text \"I look.\" call a files.read {\"path\":\"ä\"} call b add {\"b\":2,\"a\":1}",
    ),
    (
        "calls with one number for all, whole, and `stop` as the reason",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"add\",\"arguments\":\"{}\"}}]}}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"b\",\"function\":{\"name\":\"add\",\"arguments\":\"{\\\"a\\\":1}\"}}]},\"finish_reason\":\"stop\"}]}\n\n",
        "tools m in 0 out 0 cached 0: call a add {} call b add {\"a\":1}",
    ),
    (
        "calls without numbers and ids, arguments as an object, the name repeated",
        "data: {\"choices\":[{\"delta\":{\"content\":null,\"tool_calls\":[{\"id\":null,\"function\":{\"name\":\"add\",\"arguments\":{\"z\":1,\"a\":2}}}]}}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"name\":\"add\",\"arguments\":\"\"}}]}}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"arguments\":\"{\\\"b\\\"\"}}]}}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"arguments\":\":3}\"}}]}}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"tool_calls\":null},\"finish_reason\":\"tool_calls\"}]}\n\n",
        "tools m in 0 out 0 cached 0: call manual-id-1767225600000-0 add {\"z\":1,\"a\":2} call manual-id-1767225600000-1 add {\"b\":3}",
    ),
    (
        "a repeated name that is spelled otherwise on the wire",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"files__read\",\"arguments\":\"{\"}}]}}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"files__read\",\"arguments\":\"}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\n",
        "tools m in 0 out 0 cached 0: call a files.read {}",
    ),
    (
        "text after a call",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"add\",\"arguments\":\"{\"}}]}}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"content\":\"wait\"}}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\n",
        "tools m in 0 out 0 cached 0: call a add {} text \"wait\"",
    ),
    (
        "a legacy function call",
        "data: {\"choices\":[{\"delta\":{\"function_call\":{\"name\":\"add\",\"arguments\":\"{\\\"a\\\"\"}}}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"function_call\":{\"arguments\":\":1}\"}},\"finish_reason\":\"function_call\"}]}\n\n\
         data: [DONE]\n\n",
        "tools m in 0 out 0 cached 0: call manual-id-1767225600000 add {\"a\":1}",
    ),
    (
        "arguments that are cut off by the output limit",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"add\",\"arguments\":\"{\\\"a\\\": 1\"}}]}}]}\n\n\
         data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}]}\n\n\
         data: [DONE]\n\n",
        "length m in 0 out 0 cached 0: call a add malformed \"{\\\"a\\\": 1\"",
    ),
    (
        "native reasoning under both names",
        "data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\",\"content\":null}}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"reasoning\":\" so\",\"reasoning_content\":\" so\"}}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"reasoning\":\".\",\"reasoning_details\":[{\"type\":\"x\"}]}}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"content\":\"<think>again</think> yes\"},\"finish_reason\":\"stop\"}]}\n\n",
        "stop m in 0 out 0 cached 0: thinking \"hm so.\" text \"yes\"",
    ),
    (
        "thinking between tags, cut anywhere",
        "data: {\"choices\":[{\"delta\":{\"content\":\"<thi\"}}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"content\":\"nk>\\nhm\"}}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"content\":\" so\\n</\"}}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"content\":\"think>\\n\\nyes\"}}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"content\":\" <\"},\"finish_reason\":\"stop\"}]}\n\n",
        "stop m in 0 out 0 cached 0: thinking \"hm so\" text \"yes <\"",
    ),
    (
        "an unclosed tag after native reasoning is the answer",
        "data: {\"choices\":[{\"delta\":{\"reasoning\":\"hm\"}}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"content\":\"<think>yes\"},\"finish_reason\":\"stop\"}]}\n\n",
        "stop m in 0 out 0 cached 0: thinking \"hm\" text \"yes\"",
    ),
    (
        "content in parts, usage in another place, model by another name",
        "data: {\"choices\":[{\"delta\":{\"content\":[{\"type\":\"thinking\",\"thinking\":[{\"type\":\"text\",\"text\":\"hm\"}]}]}}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"content\":[{\"type\":\"text\",\"text\":\"yes\"},{\"type\":\"text\",\"text\":\"!\"}]},\"finish_reason\":\"eos\"}],\"x_groq\":{\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2}}}\n\n",
        "stop m in 5 out 2 cached 0: thinking \"hm\" text \"yes!\"",
    ),
    (
        "a refusal, and what a filter stopped",
        "data: {\"choices\":[{\"delta\":{\"refusal\":\"No.\"}}]}\n\n\
         data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"content_filter\"}]}\n\n",
        "refusal m in 0 out 0 cached 0: text \"No.\"",
    ),
    (
        "a refusal is no answer",
        "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":null,\"refusal\":\"\"}}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"refusal\":\"I'm sorry\"}}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"refusal\":\", no.\"}}]}\n\n\
         data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n\
         data: [DONE]\n\n",
        "refusal m in 0 out 0 cached 0: text \"I'm sorry, no.\"",
    ),
    (
        "a call that is cut off before its arguments, behind a complete one",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"add\",\"arguments\":\"\"}}]}}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":1,\"id\":\"b\",\"function\":{\"name\":\"add\",\"arguments\":\"\"}}]}}]}\n\n\
         data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}]}\n\n",
        "length m in 0 out 0 cached 0: call a add {} call b add malformed \"\"",
    ),
    (
        "null as arguments, beside a null in arguments",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"add\",\"arguments\":\"null\"}}]}}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":1,\"id\":\"b\",\"function\":{\"name\":\"add\",\"arguments\":\"{\\\"a\\\":null}\"}}]}}]}\n\n\
         data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n",
        "tools m in 0 out 0 cached 0: call a add {} call b add {\"a\":null}",
    ),
    (
        "an empty call in the legacy field and in the list is none",
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\",\"function_call\":{\"name\":\"\",\"arguments\":\"\"},\"tool_calls\":[{}]}}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"content\":\"b\",\"function_call\":{}},\"finish_reason\":\"stop\"}]}\n\n",
        "stop m in 0 out 0 cached 0: text \"ab\"",
    ),
    (
        "two finish reasons, and text between them",
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"content\":\"b\"}}]}\n\n\
         data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}]}\n\n\
         data: [DONE]\n\n",
        "length m in 0 out 0 cached 0: text \"ab\"",
    ),
    (
        "tokens written to the cache that are counted among those read from it",
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n\
         data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3438,\"completion_tokens\":2,\"total_tokens\":3440,\"prompt_tokens_details\":{\"cached_tokens\":3435,\"cache_write_tokens\":3435}}}\n\n\
         data: [DONE]\n\n",
        "stop m in 3 out 2 cached 0: written 3435 text \"a\"",
    ),
    (
        "no reason at the end but a proper close, a second answer ignored, no empty line at the end",
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}},{\"index\":1,\"delta\":{\"content\":\"b\"}}]}\n\n\
         data: [DONE]",
        "stop m in 0 out 0 cached 0: text \"a\"",
    ),
];
