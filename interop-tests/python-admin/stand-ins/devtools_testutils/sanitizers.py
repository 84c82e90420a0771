"""What would be taken out of recordings."""


def _nothing(**_options) -> None:
    pass


add_remove_header_sanitizer = add_general_regex_sanitizer = add_oauth_response_sanitizer = _nothing
