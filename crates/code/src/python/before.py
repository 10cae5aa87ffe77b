# Runs before a program: defines the functions of the tools and the program's `json`, and shows the last expression's value.
# Values become JSON here, part by part, where the limits of memory and time apply; the interpreter's own `json.dumps`
# counts neither. Built-ins are kept under other names, so that a program that rebinds their names harms
# only itself.
import json as _archon_json

def _archon_begin(
    json, ask, isinstance=isinstance, str=str, int=int, float=float, bool=bool, list=list, tuple=tuple, dict=dict,
    repr=repr, type=type, len=len, sorted=sorted, TypeError=TypeError, ValueError=ValueError, RecursionError=RecursionError,
):
    quoted = json.dumps
    read = json.loads

    def number(value, allow_nan):
        if isinstance(value, float) and value - value != 0:
            if not allow_nan:
                raise ValueError('Out of range float values are not JSON compliant: ' + repr(value))
            return 'NaN' if value != value else 'Infinity' if value > 0 else '-Infinity'
        return repr(value)

    def key_text(key, ensure_ascii, allow_nan):
        if isinstance(key, str):
            return quoted(key, ensure_ascii=ensure_ascii)
        if key is None:
            return '"null"'
        if isinstance(key, bool):
            return '"true"' if key else '"false"'
        if isinstance(key, (int, float)):
            return '"' + number(key, allow_nan) + '"'
        raise TypeError('keys must be str, int, float, bool or None, not ' + type(key).__name__)

    def text(value, depth, indent, comma, colon, sort_keys, ensure_ascii, allow_nan):
        if value is None:
            return 'null'
        if isinstance(value, bool):
            return 'true' if value else 'false'
        if isinstance(value, str):
            return quoted(value, ensure_ascii=ensure_ascii)
        if isinstance(value, (int, float)):
            return number(value, allow_nan)
        if depth > 100:
            raise ValueError('the value holds itself, or is too deep to be JSON')
        depth = depth + 1
        if isinstance(value, (list, tuple)):
            open, close = '[', ']'
            parts = [text(item, depth, indent, comma, colon, sort_keys, ensure_ascii, allow_nan) for item in value]
        elif isinstance(value, dict):
            open, close = '{', '}'
            items = sorted(value.items()) if sort_keys else value.items()
            parts = [
                key_text(key, ensure_ascii, allow_nan) + colon
                + text(item, depth, indent, comma, colon, sort_keys, ensure_ascii, allow_nan)
                for key, item in items
            ]
        else:
            raise TypeError('Object of type ' + type(value).__name__ + ' is not JSON serializable')
        if indent is None or len(parts) == 0:
            return open + comma.join(parts) + close
        inner = '\n' + indent * depth
        return open + inner + (comma + inner).join(parts) + '\n' + indent * (depth - 1) + close

    def dumps(obj, *, indent=None, sort_keys=False, ensure_ascii=True, allow_nan=True, separators=None):
        if isinstance(indent, int):
            indent = ' ' * indent
        comma, colon = separators if separators is not None else (', ' if indent is None else ',', ': ')
        return text(obj, 0, indent, comma, colon, sort_keys, ensure_ascii, allow_nan)

    def plain(value):
        return text(value, 0, None, ', ', ': ', False, False, False)

    def value_of(value):
        if value is None:
            return None
        try:
            return 'j' + plain(value)
        except (TypeError, ValueError, RecursionError):
            return 'r' + repr(value)

    def tool(name):
        def call(*args, **kwargs):
            return read(ask(name, plain([args, kwargs])))
        return call

    return value_of, tool, dumps

class _archon_module:
    pass

_archon_value, _archon_tool, _archon_dumps = _archon_begin(_archon_json, _archon_call)
_archon_module = _archon_module()
_archon_module.loads = _archon_json.loads
_archon_module.dumps = _archon_dumps
_archon_module.JSONDecodeError = _archon_json.JSONDecodeError
_archon_json = _archon_begin = None
