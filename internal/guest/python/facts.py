def facts(source, options):
    return {}
